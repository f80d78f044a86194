import type { Clock } from '../../src/kubernetes/client/index.ts'
import { VirtualTimers } from '../../src/kubernetes/testing/virtual-timers.ts'

/** {@link VirtualTimers} that are also the `Clock` of a client. */
export class VirtualClock extends VirtualTimers implements Clock {
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const done = () => {
        cancel()
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.after(ms, done)
      signal?.addEventListener('abort', done)
    })
  }
}
