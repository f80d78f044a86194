import { type Signal, useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { Component } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { formatNumber, formatTime } from '../parts/format.ts'
import { rangesIn } from './find-lines.ts'
import type { FoldedLines } from './folded-lines.ts'
import { piecesOf } from './line-pieces.ts'
import type { LogLines, LogSection } from './log-lines.ts'

/** Must be that of the style sheet. */
const rowHeightPx = 20
/** Rows beyond those that are visible, in both directions. */
const overscanRows = 10
/** The lines in the document change after so many rows were scrolled. */
const stepRows = 10

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
  readonly places: Signal<FoldedLines>
  readonly onLine: (line: number) => void
}

/** A log of any length of which only the visible lines are in the document. Lines are text, whatever they contain, and are not wrapped: all have one height. */
export function LogView({ lines, count, places, isFollowing, target, folded, search, onLine }: LogViewProps) {
  const scroller = useRef<HTMLElement>(null)
  const first = useSignal(0)
  const visible = useSignal(40)
  const lastTop = useRef(0)
  const measure = () => {
    const element = scroller.current
    if (!element) return
    const { scrollTop, clientHeight, scrollHeight } = element
    const top = Math.floor(scrollTop / rowHeightPx)
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
    return () => observer.disconnect()
  }, [])
  const rows = places.value.rows
  useLayoutEffect(() => {
    // The user may have scrolled since: that event has not arrived yet.
    measure()
    if (isFollowing.value) scrollTo(Number.MAX_SAFE_INTEGER)
  }, [rows, isFollowing.value])
  const hasTarget = useComputed(() => target.value >= 0 && target.value < count.value)
  useSignalEffect(() => {
    if (!hasTarget.value) return
    const element = scroller.current as HTMLElement
    const row = places.peek().rowOf(target.value)
    const isVisible = row * rowHeightPx >= element.scrollTop && (row + 2) * rowHeightPx <= element.scrollTop + element.clientHeight
    if (!isVisible) scrollTo(Math.max(0, row * rowHeightPx - element.clientHeight / 3))
  })

  const start = Math.max(0, Math.min(first.value, rows) - overscanRows)
  const end = Math.min(rows, first.value + visible.value + overscanRows)
  const digits = String(count.value).length
  return (
    <section
      ref={scroller}
      class="log"
      aria-label={`Log, ${formatNumber(count.value)} lines`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
      tabIndex={0}
      onScroll={measure}
      style={{ '--digits': `${digits}ch`, '--log-height': `${rows * rowHeightPx}px` }}
    >
      <div class="log-all" style={{ height: `${rows * rowHeightPx}px` }}>
        <div class="log-shown" style={{ transform: `translateY(${start * rowHeightPx}px)` }}>
          {Array.from({ length: Math.max(0, end - start) }, (_, at) => {
            const line = places.value.lineAt(start + at)
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

function renderLine({ lines, line, section, isFolded, folded, search, isTarget, onLine }: LogLineProps) {
  const text = lines.texts[line] as string
  const timeMs = lines.timesMs[line] as number
  const pieces = piecesOf(text, lines.spansOf(line), rangesIn(text, search))
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
        {isFolded && <span class="dim"> … folded</span>}
      </span>
    </div>
  )
}
