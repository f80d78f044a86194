import { useComputed } from '@preact/signals'
import { nowMs } from '../parts/clock.ts'
import { formatDuration } from '../parts/format.ts'
import { clockOffsetMs, connection } from '../stream/tab.ts'

/** Whether what is shown is current; how old it is if not. Only the change is announced, not every second. */
export function ConnectionState() {
  const now = connection.value
  const age = useComputed(() => {
    const { isLive, heardMs } = connection.value ?? { isLive: true, heardMs: 0 }
    return isLive ? '' : formatDuration(nowMs() - clockOffsetMs.value - heardMs)
  })
  const state = now === undefined ? 'connecting' : now.isLive ? 'live' : 'lost'
  return (
    <div class={`connection ${state}`}>
      <span class="dot" aria-hidden="true" />
      <output>{state === 'live' ? 'Live' : state === 'connecting' ? 'Connecting' : 'Reconnecting'}</output>
      {state === 'lost' && <span>, updated {age} ago</span>}
    </div>
  )
}
