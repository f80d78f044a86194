import { useComputed } from '@preact/signals'
import { nowMs } from '../parts/clock.ts'
import { formatDuration } from '../parts/format.ts'
import { clockOffsetMs, connection } from '../stream/tab.ts'

/** The server writes every 5 s: after so long the connection may have died. */
const lateMs = 12_000

/** Whether what is shown is current; how old it is if not. Only the change is announced, not every second. */
export function ConnectionState() {
  const now = connection.value
  const silentMs = useComputed(() => {
    const ms = nowMs() - clockOffsetMs.value - (connection.value?.heardMs ?? 0)
    return connection.value?.isLive && ms < lateMs ? 0 : ms
  })
  const state = now === undefined ? 'connecting' : silentMs.value === 0 ? 'live' : 'lost'
  return (
    <div class={`connection ${state}`}>
      <span class="dot" aria-hidden="true" />
      <output>{state === 'live' ? 'Live' : state === 'connecting' ? 'Connecting' : 'Reconnecting'}</output>
      {state === 'lost' && <span>, updated {formatDuration(silentMs.value)} ago</span>}
    </div>
  )
}
