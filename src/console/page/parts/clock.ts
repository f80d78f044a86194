import { signal } from '@preact/signals'
import { clockOffsetMs } from '../stream/tab.ts'

const nowHere = signal(Date.now())
setInterval(() => {
  if (document.visibilityState === 'visible') nowHere.value = Date.now()
}, 1_000)

/** The time of the server, in milliseconds since the epoch; changes every second. */
export const nowMs = (): number => nowHere.value + clockOffsetMs.value
