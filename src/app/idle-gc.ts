import { performance } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const checkIntervalMs = 10_000
/** Below this event loop utilization no request waits for the pause. */
const idleUtilization = 0.05
/** Free memory inside the heap that is worth a pause of about 50 ms. */
const minFreeBytes = 16 * 1024 * 1024

/**
 * Collects garbage when the process is idle, so that memory from a burst of work is returned to the operating system. V8 collects on
 * allocation, and an idle process allocates nothing: measured with 1,000 Stacks, 60 MB stayed until the next burst.
 * Returns a function that stops it.
 */
export function collectGarbageWhenIdle(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  let before = performance.eventLoopUtilization()
  const timer = setInterval(() => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    const { heapTotal, heapUsed } = process.memoryUsage()
    if (utilization < idleUtilization && heapTotal - heapUsed > minFreeBytes) collect()
  }, checkIntervalMs)
  timer.unref()
  return () => clearInterval(timer)
}
