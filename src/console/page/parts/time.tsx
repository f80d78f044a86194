import { signal, useComputed } from '@preact/signals'
import { connection } from '../stream/tab.ts'
import { formatDuration, formatExactDuration } from './format.ts'

/** The browser's clock, every second while the tab is visible. */
export const nowMs = signal(Date.now())
setInterval(() => {
  if (!document.hidden) nowMs.value = Date.now()
}, 1_000)

/** The server's clock: times of objects are compared with it. */
const serverNowMs = (): number => nowMs.value + connection.value.offsetMs

/** How long ago, or how long until, `ms` is. The exact time is in its title. Renders when the text changes, not every second. */
export function Age({ ms }: { readonly ms: number | undefined }) {
  if (ms === undefined) return <span class="none">–</span>
  return <AgeText key={ms} ms={ms} />
}

function AgeText({ ms }: { readonly ms: number }) {
  const text = useComputed(() => {
    const age = serverNowMs() - ms
    return age < -999 ? `in ${formatDuration(-age)}` : formatDuration(age)
  })
  const date = new Date(ms)
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {text}
    </time>
  )
}

/** The time between two moments; without an end, until now. */
export function Duration({ fromMs, toMs }: { readonly fromMs: number | undefined; readonly toMs: number | undefined }) {
  if (fromMs === undefined) return <span class="none">–</span>
  return <span>{formatExactDuration((toMs ?? serverNowMs()) - fromMs)}</span>
}
