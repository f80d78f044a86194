import { type Signal, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { Component } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatCount, formatNumber, formatTime } from '../parts/format.ts'
import { rangesIn } from './find-lines.ts'
import { piecesOf } from './line-pieces.ts'
import type { LineRows } from './line-rows.ts'
import { type LogLines, type LogSection, maxShownCharacters } from './log-lines.ts'

/** Must be that of the style sheet. */
const rowHeightPx = 20
/** Rows beyond those that are visible, in both directions. */
const overscanRows = 10
/** The rows that are scrolled before the lines in the document change. */
const stepRows = 10

/**
 * The characters that are shown of a line that is not wrapped: with 40 lines of 16 KiB on a screen a frame of a scroll took 75 ms, and 185 ms with a
 * colour for every second character.
 */
const maxUnwrappedCharacters = 2_000
/** The length of the text whose width is measured. */
const rulerColumns = 10
/** The padding of the text, left and right together. Must be that of the style sheet. */
const textPaddingPx = 24

const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

/** What the view shows, and what its user has asked for. */
export type LogViewState = {
  /** Whether the newest line stays in view. Scrolling up ends it. */
  readonly isFollowing: Signal<boolean>
  /** Index of the line that the address or a search names; -1: none. It is brought into view whenever it changes. */
  readonly target: Signal<number>
  readonly folded: Signal<ReadonlySet<string>>
  readonly search: Signal<string>
}

export type LogViewProps = LogViewState & {
  readonly lines: LogLines
  /** Number of lines that have arrived. */
  readonly count: Signal<number>
  readonly places: Signal<LineRows>
  readonly isWrapped: Signal<boolean>
  /** Set to how many columns of text a row has. */
  readonly columns: Signal<number>
  readonly onLine: (line: number) => void
}

/**
 * A log of any length of which only the visible lines are in the document. Lines are text, whatever they contain. The rows of a wrapped line follow from
 * its columns, because lines that are not in the document cannot be measured; where a font differs, the lines below move by a row when they are reached.
 */
export function LogView({ lines, count, places, columns, isWrapped, isFollowing, target, folded, search, onLine }: LogViewProps) {
  const scroller = useRef<HTMLElement>(null)
  const ruler = useRef<HTMLElement>(null)
  /** What stays in its place when lines get other rows: the target if it is visible, or else the line at the top. */
  const anchor = useRef({ line: 0, belowTopPx: 0 })
  const first = useSignal(0)
  const visible = useSignal(40)
  const lastTop = useRef(0)
  const hasTarget = useComputed(() => target.value >= 0 && target.value < count.value)
  const measure = () => {
    const element = scroller.current
    if (!element) return
    const { scrollTop, clientHeight, scrollHeight } = element
    const top = Math.floor(scrollTop / rowHeightPx)
    const targetPx = hasTarget.peek() ? places.peek().rowOf(target.peek()) * rowHeightPx - scrollTop : -1
    const isTargetVisible = targetPx >= 0 && targetPx < clientHeight
    anchor.current = isTargetVisible ? { line: target.peek(), belowTopPx: targetPx } : { line: places.peek().lineAt(top), belowTopPx: 0 }
    first.value = Math.floor(top / stepRows) * stepRows
    visible.value = Math.ceil(clientHeight / rowHeightPx) + stepRows
    const isAtEnd = scrollHeight - scrollTop - clientHeight < rowHeightPx
    // The view itself scrolls down only.
    if (isFollowing.peek() && scrollTop < lastTop.current && !isAtEnd) isFollowing.value = false
    lastTop.current = scrollTop
  }
  const scrollTo = (top: number) => {
    const element = scroller.current
    if (!element) return
    element.scrollTop = top
    measure()
  }
  useLayoutEffect(() => {
    const observer = new ResizeObserver(() => {
      measure()
      if (isFollowing.peek()) scrollTo(Number.MAX_SAFE_INTEGER)
    })
    observer.observe(scroller.current as Element)
    const text = ruler.current as HTMLElement
    const columnObserver = new ResizeObserver(() => {
      const columnPx = (text.firstElementChild as HTMLElement).getBoundingClientRect().width / rulerColumns
      columns.value = Math.max(1, Math.floor((text.getBoundingClientRect().width - textPaddingPx) / columnPx + 0.01))
    })
    columnObserver.observe(text)
    return () => {
      observer.disconnect()
      columnObserver.disconnect()
    }
  }, [])
  const rows = places.value.rows
  const rowColumns = isWrapped.value ? columns.value : 0
  const isFirst = useRef(true)
  useLayoutEffect(() => {
    const { line, belowTopPx } = anchor.current
    if (!isFirst.current) scrollTo(isFollowing.peek() ? Number.MAX_SAFE_INTEGER : places.peek().rowOf(line) * rowHeightPx - belowTopPx)
    isFirst.current = false
  }, [rowColumns])
  useLayoutEffect(() => {
    // The user may have scrolled since: that event has not arrived yet.
    measure()
    if (isFollowing.value) scrollTo(Number.MAX_SAFE_INTEGER)
  }, [rows, isFollowing.value])
  useSignalEffect(() => {
    if (!hasTarget.value) return
    const element = scroller.current as HTMLElement
    const row = places.peek().rowOf(target.value)
    const isVisible = row * rowHeightPx >= element.scrollTop && (row + 2) * rowHeightPx <= element.scrollTop + element.clientHeight
    if (!isVisible) scrollTo(Math.max(0, row * rowHeightPx - element.clientHeight / 3))
    // On a phone the log may be below the screen.
    const topPx = element.getBoundingClientRect().top + row * rowHeightPx - element.scrollTop
    const page = (element.closest('main') as Element).getBoundingClientRect()
    if (topPx < page.top || topPx + rowHeightPx > page.bottom) element.scrollIntoView({ block: 'nearest' })
  })

  const start = Math.max(0, Math.min(first.value, rows) - overscanRows)
  const end = Math.min(rows, first.value + visible.value + overscanRows)
  const shown = places.value.linesOf(start, end)
  const digits = String(count.value).length
  return (
    <section
      ref={scroller}
      class={`log ${isWrapped.value ? 'wrapped' : ''}`}
      aria-label={`Log, ${formatNumber(count.value)} lines`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={measure}
      style={{ '--digits': `${digits}ch`, '--log-height': `${rows * rowHeightPx}px` }}
    >
      <div class="log-ruler" aria-hidden="true">
        <span class="log-number" />
        <span class="log-time" />
        <span class="log-text" ref={ruler}>
          <span>{'0'.repeat(rulerColumns)}</span>
        </span>
      </div>
      <div class="log-all" style={{ height: `${rows * rowHeightPx}px` }}>
        <div
          class="log-shown"
          style={{ transform: `translateY(${shown[0] === undefined ? 0 : places.value.rowOf(shown[0]) * rowHeightPx}px)` }}
        >
          {shown.map(line => {
            const section = lines.sections.find(each => each.line === line)
            return (
              <LogLine
                key={line}
                lines={lines}
                line={line}
                section={section}
                isFolded={section !== undefined && folded.value.has(section.title)}
                folded={folded}
                search={search.value}
                isTarget={line === target.value}
                isWrapped={isWrapped.value}
                onLine={onLine}
              />
            )
          })}
        </div>
      </div>
    </section>
  )
}

type LogLineProps = {
  readonly lines: LogLines
  readonly line: number
  readonly section: LogSection | undefined
  readonly isFolded: boolean
  readonly folded: Signal<ReadonlySet<string>>
  readonly search: string
  readonly isTarget: boolean
  readonly isWrapped: boolean
  readonly onLine: (line: number) => void
}

/** A line never changes: with the same properties it does not render again. */
class LogLine extends Component<LogLineProps> {
  override shouldComponentUpdate(next: Readonly<LogLineProps>): boolean {
    return (Object.keys(next) as (keyof LogLineProps)[]).some(name => next[name] !== this.props[name])
  }

  override render() {
    return renderLine(this.props)
  }
}

function renderLine({ lines, line, section, isFolded, folded, search, isTarget, isWrapped, onLine }: LogLineProps) {
  const text = lines.texts[line] as string
  const timeMs = lines.timesMs[line] as number
  const shown = text.slice(0, isWrapped ? maxShownCharacters : maxUnwrappedCharacters)
  const left = text.length - shown.length
  const pieces = piecesOf(shown, lines.spansOf(line), rangesIn(shown, search))
  return (
    <div class={`log-line ${isTarget ? 'target' : ''} ${section ? 'phase' : ''}`}>
      <a
        class="log-number"
        href={`#L${line + 1}`}
        aria-label={`Line ${line + 1}`}
        onClick={event => {
          event.preventDefault()
          onLine(line)
        }}
      >
        {line + 1}
      </a>
      <span class="log-time" title={timeMs > 0 ? formatTime(timeMs) : undefined}>
        {timeMs > 0 ? clock.format(timeMs) : ''}
      </span>
      {section && (
        <button
          type="button"
          class="fold"
          aria-expanded={!isFolded}
          aria-label={`Phase ${section.title}`}
          onClick={() => {
            const next = new Set(folded.peek())
            if (!next.delete(section.title)) next.add(section.title)
            folded.value = next
          }}
        >
          {isFolded ? '▸' : '▾'}
        </button>
      )}
      <span class="log-text">
        {pieces.map(({ text, classes, isMatch }, index) =>
          isMatch ? (
            <mark key={index} class={classes}>
              {text}
            </mark>
          ) : classes === '' ? (
            text
          ) : (
            <span key={index} class={classes}>
              {text}
            </span>
          ),
        )}
        {left > 0 && (
          <span class="dim">
            {' '}
            … {formatCount(left, 'more character')}: {isWrapped ? 'download the log' : 'wrap lines'} to read them
          </span>
        )}
        {isFolded && <span class="dim"> … folded</span>}
      </span>
    </div>
  )
}
