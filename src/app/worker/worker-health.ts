import { defaultLeaseTimings, type WorkerHealth } from '../../execution/worker/index.ts'
import { respondToRequests, smallThreadOptions, startThread, ThreadRequests } from '../../kubernetes/util/index.ts'
import { type Address, formatAddress } from '../address.ts'

export type HealthThreadData = Address & {
  readonly stuckAfterMs: number
  /** One BigInt64: when the event loop of the worker's main thread last ran, in milliseconds of `process.hrtime`. */
  readonly lastTickMs: SharedArrayBuffer
}
/** The main thread sends one request, to listen. */
export type ListenResponse = { readonly port: number } | { readonly error: string }
/** The health thread sends a request for each probe. */
export type HealthRequest = 'health'

const tickEveryMs = 500

/**
 * Serves the health of one worker, for a kubelet or any other supervisor of processes. `/startupz` returns 200 once it has registered.
 * `/readyz` does while it can get Runs: it is registered, its Lease is fresh, its supervisor is connected, and it is not draining.
 * `/livez` does while its event loop runs, its Lease was renewed recently, and its supervisor has not been lost for good. 503 carries
 * the reasons. Nothing else is shown, so no password is required. A thread (`health-thread.ts`) serves the requests, so that they are
 * answered while the event loop of the main thread is blocked.
 *
 * @param options `stuckAfterMs`: how long the event loop may be blocked before `/livez` fails. Default: as long as an engine may run
 * without a renewal of the Lease.
 */
export async function startWorkerHealth(
  address: Address,
  health: () => WorkerHealth,
  { stuckAfterMs = defaultLeaseTimings.killMs }: { stuckAfterMs?: number } = {},
): Promise<{ readonly address: Address; close(): void }> {
  const lastTick = new BigInt64Array(new SharedArrayBuffer(8))
  const tick = () => Atomics.store(lastTick, 0, process.hrtime.bigint() / 1_000_000n)
  tick()
  const workerData: HealthThreadData = { ...address, stuckAfterMs, lastTickMs: lastTick.buffer as SharedArrayBuffer }
  const thread = startThread('app/worker/health-thread', { workerData, ...smallThreadOptions() })
  respondToRequests<HealthRequest, WorkerHealth>(thread, health)
  const requests = new ThreadRequests<'listen', ListenResponse>(thread)
  thread.on('error', error => requests.fail(error as Error))
  const ticking = setInterval(tick, tickEveryMs).unref()
  const close = (): void => {
    clearInterval(ticking)
    void thread.terminate()
  }
  try {
    const response = await requests.send('listen')
    if ('error' in response) throw new Error(response.error)
    // It does not keep the worker alive.
    thread.unref()
    return { address: { host: address.host, port: response.port }, close }
  } catch (error) {
    close()
    throw new Error(`failed to listen on ${formatAddress(address)}, the address of the worker's health: ${(error as Error).message}`)
  }
}
