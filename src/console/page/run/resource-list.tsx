import { useState } from 'preact/hooks'
import type { Tone } from '../../protocol/index.ts'
import type { LogReader } from '../log/log-reader.ts'
import type { ProgressState } from '../log/progress-state.ts'
import { Badge } from '../parts/badge.tsx'
import { formatCount, formatSeconds } from '../parts/format.ts'
import { Duration } from '../parts/time.tsx'

const firstShown = 12
const mostShown = 500
const tones: Readonly<Record<ProgressState['state'], Tone>> = { failed: 'bad', running: 'busy', done: 'good', planned: 'idle' }
const order: readonly ProgressState['state'][] = ['failed', 'running', 'done', 'planned']

/** What the log shows of each resource, or task of Ansible: those that failed and that are in progress first, then the newest. */
export function ResourceList({ reader, hasEnded }: { readonly reader: LogReader; readonly hasEnded: boolean }) {
  const [isAll, setAll] = useState(false)
  const { progress } = reader.lines
  const items = reader.count.value > 0 ? [...progress.items].map(([key, item]) => ({ key, ...item })) : []
  if (items.length === 0) return null
  const sorted = items.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state) || b.line - a.line)
  const counts = order.map(state => [state, items.filter(each => each.state === state).length] as const)
  const shown = sorted.slice(0, isAll ? mostShown : firstShown)
  return (
    <section class="panel" aria-labelledby="resources-title">
      <h2 id="resources-title">{progress.noun === 'task' ? 'Tasks' : 'Resources'}</h2>
      <p class="dim">
        {counts
          .filter(([, count]) => count > 0)
          .map(([state, count]) => `${count} ${state}`)
          .join(', ')}
      </p>
      <ul class="plain resource-list">
        {shown.map(({ key, name, action, state, line, startedMs, durationMs }) => (
          <li key={key}>
            <Badge value={state} tone={tones[state]} />
            <a class="clip" href={`#L${line + 1}`} title={name} onClick={event => openLine(event, line)}>
              {name}
            </a>
            <span class="dim">{action}</span>
            <span class="number dim">
              {durationMs !== undefined
                ? formatSeconds(durationMs / 1_000)
                : state === 'running' && !hasEnded && <Duration fromMs={startedMs} toMs={undefined} />}
            </span>
          </li>
        ))}
      </ul>
      {sorted.length > firstShown && (
        <button type="button" class="small" onClick={() => setAll(!isAll)}>
          {isAll
            ? 'Show fewer'
            : `Show ${sorted.length > mostShown ? `${mostShown} of ` : 'all '}${formatCount(sorted.length, progress.noun)}`}
        </button>
      )}
    </section>
  )
}

/** The log listens to changes of the part behind `#`, which a link of the router would not cause. */
function openLine(event: MouseEvent, line: number): void {
  event.preventDefault()
  const hash = `#L${line + 1}`
  if (location.hash === hash) window.dispatchEvent(new HashChangeEvent('hashchange'))
  else location.hash = hash
  document.querySelector('.log')?.scrollIntoView({ block: 'nearest' })
}
