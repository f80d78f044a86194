import { formatDuration } from '../parts/format.ts'
import { nowMs } from '../parts/time.tsx'
import { connection } from '../stream/tab.ts'

/** Whether what the page shows is current, and how old it is otherwise. */
export function ConnectionState() {
  const { state, lastMs } = connection.value
  const text = state === 'live' ? 'Live' : state === 'connecting' ? 'Connecting' : reconnecting(lastMs)
  return (
    <>
      <span class={`connection ${state}`}>
        <span class="dot" />
        {text}
      </span>
      <span class="visually-hidden" aria-live="polite">
        {state === 'reconnecting' ? 'The connection is lost. The page is not current.' : state === 'live' ? 'Connected' : ''}
      </span>
    </>
  )
}

const reconnecting = (lastMs: number | undefined) =>
  lastMs === undefined ? 'Reconnecting' : `Updated ${formatDuration(nowMs.value - lastMs)} ago, reconnecting`
