import { useComputed, useSignal } from '@preact/signals'
import { useCallback, useEffect, useRef } from 'preact/hooks'
import { Command } from '../parts/command.tsx'
import { formatBytes, formatNumber } from '../parts/format.ts'
import { useShortcuts } from '../parts/shortcuts.ts'
import { stored as storedSignal } from '../stored.ts'
import { connection } from '../stream/tab.ts'
import { findLines } from './find-lines.ts'
import { LineRows } from './line-rows.ts'
import type { LogReader } from './log-reader.ts'
import { LogView } from './log-view.tsx'

type Name = { readonly namespace: string; readonly name: string }
/** `status.log` of a Run that has ended. */
export type StoredLog = { readonly bytes: number; readonly lines: number; readonly truncated: boolean }

/** Whether long lines continue below, in all logs. */
const isWrapped = storedSignal('log.wrap', false, (value): value is boolean => typeof value === 'boolean')

/** The log of a Run: it follows, searches, folds phases, and can be copied and downloaded. */
export function LogPanel({
  run,
  reader,
  hasStarted,
  hasEnded,
  stored,
}: {
  readonly run: Name
  readonly reader: LogReader
  readonly hasStarted: boolean
  readonly hasEnded: boolean
  readonly stored: StoredLog | undefined
}) {
  const { lines, count } = reader
  const target = useSignal(lineOf(location.hash))
  const isFollowing = useSignal(!hasEnded && target.value < 0)
  const folded = useSignal<ReadonlySet<string>>(new Set())
  const search = useSignal('')
  const result = useSignal('')
  const field = useRef<HTMLInputElement>(null)
  const columns = useSignal(0)
  const places = useComputed(() => {
    const width = isWrapped.value ? columns.value : 0
    const rowsOf = width > 0 ? (line: number) => Math.max(1, Math.ceil((lines.columns[line] as number) / width)) : undefined
    return new LineRows({ length: count.value, sections: lines.sections, folded: folded.value, rowsOf })
  })
  const matches = useMatches(reader, search.value)

  useEffect(() => {
    const changed = () => {
      const line = lineOf(location.hash)
      if (line >= 0) goTo(line)
    }
    window.addEventListener('hashchange', changed)
    return () => window.removeEventListener('hashchange', changed)
  }, [])
  // The stream of the page has a heartbeat, a silent log has none: after a lost connection this one may be dead too.
  const isLive = connection.value?.isLive
  useEffect(() => {
    if (isLive) reader.reconnect()
  }, [isLive])
  useShortcuts({ '/': () => field.current?.focus(), f: () => follow() })

  const goTo = (line: number) => {
    isFollowing.value = false
    const section = lines.sections.findLast(each => each.line <= line)
    if (section && folded.peek().has(section.title) && section.line !== line)
      folded.value = new Set([...folded.peek()].filter(title => title !== section.title))
    target.value = line
  }
  const follow = () => {
    isFollowing.value = !isFollowing.peek()
  }
  // The same function every time: lines render again when it changes.
  const link = useCallback((line: number) => {
    history.replaceState(null, '', `#L${line + 1}`)
    goTo(line)
  }, [])
  const step = (direction: 1 | -1) => {
    if (matches.length === 0) return
    const at = target.peek()
    const next = direction === 1 ? matches.find(line => line > at) : matches.findLast(line => line < at)
    goTo(next ?? (matches.at(direction === 1 ? 0 : -1) as number))
  }
  const show = (text: string) => {
    result.value = text
    setTimeout(() => {
      result.value = ''
    }, 2_000)
  }
  const copy = () =>
    navigator.clipboard.writeText(`${lines.texts.join('\n')}\n`).then(
      () => show(`${formatNumber(lines.length)} lines copied`),
      () => show('the browser does not allow copying'),
    )
  const download = () => {
    const url = URL.createObjectURL(new Blob([`${lines.texts.join('\n')}\n`], { type: 'text/plain' }))
    const anchor = Object.assign(document.createElement('a'), { href: url, download: `${run.namespace}-${run.name}.log` })
    anchor.click()
    setTimeout(() => URL.revokeObjectURL(url), 10_000)
  }
  const at = matches.indexOf(target.value)
  return (
    <section class="panel" aria-labelledby="log-title">
      <header class="log-header">
        <h2 id="log-title">Log</h2>
        <span class="dim">{stateText(reader, hasStarted, hasEnded)}</span>
        <output class="result">{result}</output>
        <div class="log-tools">
          <span class="log-search">
            <input
              ref={field}
              type="text"
              aria-label="Search the log"
              placeholder="Search"
              value={search}
              onInput={event => {
                search.value = event.currentTarget.value
              }}
              onKeyDown={event => {
                if (event.key === 'Enter') step(event.shiftKey ? -1 : 1)
                else if (event.key === 'Escape') {
                  search.value = ''
                  event.currentTarget.blur()
                }
              }}
            />
            {search.value !== '' && (
              <span class="number dim" aria-live="polite">
                {matches.length === 0 ? 'none' : `${at < 0 ? '' : `${formatNumber(at + 1)} of `}${formatNumber(matches.length)}`}
              </span>
            )}
          </span>
          <button type="button" class="small" disabled={matches.length === 0} aria-label="Previous match" onClick={() => step(-1)}>
            ↑
          </button>
          <button type="button" class="small" disabled={matches.length === 0} aria-label="Next match" onClick={() => step(1)}>
            ↓
          </button>
          <button type="button" class="small" aria-pressed={isFollowing.value} onClick={follow}>
            Follow
          </button>
          <button
            type="button"
            class="small"
            aria-pressed={isWrapped.value}
            onClick={() => {
              isWrapped.value = !isWrapped.peek()
            }}
          >
            Wrap
          </button>
          <button type="button" class="small" disabled={count.value === 0} onClick={() => void copy()}>
            Copy
          </button>
          <button type="button" class="small" disabled={count.value === 0} onClick={download}>
            Download
          </button>
        </div>
      </header>
      {stored?.truncated && (
        <p class="hint">The log reached its limit ({formatBytes(stored.bytes)}): what followed was dropped, as its last lines say.</p>
      )}
      {count.value > 0 ? (
        <LogView {...{ lines, count, places, columns, isWrapped, isFollowing, target, folded, search, onLine: link }} />
      ) : (
        <EmptyLog reader={reader} hasStarted={hasStarted} hasEnded={hasEnded} stored={stored} />
      )}
      <Command text={`oarlock logs run/${run.name} -n ${run.namespace}${hasEnded ? '' : ' --follow'}`} />
    </section>
  )
}

function EmptyLog({
  reader,
  hasStarted,
  hasEnded,
  stored,
}: {
  readonly reader: LogReader
  readonly hasStarted: boolean
  readonly hasEnded: boolean
  readonly stored: StoredLog | undefined
}) {
  const state = reader.state.value
  if (state.kind === 'failed' && state.code !== 404)
    return (
      <p class="problem" role="alert">
        The log cannot be read: {state.message}
      </p>
    )
  const isRead = state.kind === 'complete' || state.kind === 'failed'
  if (isRead && stored && stored.bytes > 0)
    return (
      <p class="hint">
        The log is no longer kept: the log store deletes the oldest ones at its limit. It had {formatNumber(stored.lines)} lines.
      </p>
    )
  if (isRead) return <p class="hint">{hasStarted ? 'The Run has written no log.' : 'The Run was never started: it has no log.'}</p>
  if (!hasStarted && !hasEnded) return <p class="hint">The Run has not started: its log begins when a worker executes it.</p>
  return <div class="loading" aria-busy="true" />
}

function stateText({ state, count }: LogReader, hasStarted: boolean, hasEnded: boolean): string {
  const text = `${formatNumber(count.value)} ${count.value === 1 ? 'line' : 'lines'}`
  switch (state.value.kind) {
    case 'following':
      return hasStarted && !hasEnded ? `${text}, live` : text
    case 'reconnecting':
      return `${text}, reconnecting`
    case 'failed':
      return ''
    default:
      return text
  }
}

/** Indexes of the lines that match. Lines that arrive are searched alone. */
function useMatches({ lines, count }: LogReader, search: string): readonly number[] {
  const known = useRef<{ readonly search: string; length: number; readonly found: number[] }>(undefined)
  const isKnown = known.current?.search === search && known.current.length <= count.value
  const current = isKnown && known.current ? known.current : { search, length: 0, found: [] as number[] }
  known.current = current
  for (const line of findLines(lines.texts, search, current.length)) current.found.push(line)
  current.length = count.value
  return current.found
}

/** The index of the line of `#L120`; -1: none. */
function lineOf(hash: string): number {
  const [, number] = /^#L(\d{1,9})$/.exec(hash) ?? []
  return number === undefined ? -1 : Number(number) - 1
}
