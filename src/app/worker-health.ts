import { fileURLToPath } from 'node:url'
import { Worker as Thread } from 'node:worker_threads'
import { defaultLeaseTimings, type WorkerHealth } from '../execution/worker/index.ts'
import { type Address, formatAddress } from './address.ts'

export type HealthData = {
  readonly host: string
  readonly port: number
  readonly stuckAfterMs: number
  /** One BigInt64: when the worker's event loop turned last, in milliseconds of `process.hrtime`. */
  readonly turnedAtMs: SharedArrayBuffer
}
export type FromHealth =
  | { kind: 'listening'; port: number }
  | { kind: 'failed'; message: string }
  /** A probe wants to know. */
  | { kind: 'ask'; id: number }
export type ToHealth = { id: number; health: WorkerHealth }

const turnsEveryMs = 500

/**
 * Health of one worker, for a kubelet or whatever else keeps it running: `/startupz` is 200 once it has registered, `/readyz` while it
 * may be given Runs (registered, its Lease fresh, its supervisor there, not draining), `/livez` while its event loop turns, its Lease was
 * renewed not too long ago, and it has not lost its supervisor for good. 503 comes with the reason. It shows nothing else and needs no
 * password. Served by a thread (`health-thread.ts`), which answers also while the event loop of this one stands still.
 *
 * @param options `stuckAfterMs`: so long it may stand still; default: as long as an engine may run without a renewal of the Lease.
 */
export async function startWorkerHealth(
  address: Address,
  health: () => WorkerHealth,
  { stuckAfterMs = defaultLeaseTimings.killMs }: { stuckAfterMs?: number } = {},
): Promise<{ readonly address: Address; close(): void }> {
  const turned = new BigInt64Array(new SharedArrayBuffer(8))
  const turn = () => Atomics.store(turned, 0, process.hrtime.bigint() / 1_000_000n)
  turn()
  const workerData: HealthData = { host: address.host, port: address.port, stuckAfterMs, turnedAtMs: turned.buffer as SharedArrayBuffer }
  // The same file as this one, in the checkout (.ts) and in the package (.js).
  const file = fileURLToPath(new URL(`./health-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url))
  const thread = new Thread(file, {
    workerData,
    execArgv: [],
    env: process.env.NODE_COMPILE_CACHE ? { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE } : {},
    resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 24 },
  })
  const listening = Promise.withResolvers<number>()
  thread.on('message', (message: FromHealth) => {
    if (message.kind === 'listening') listening.resolve(message.port)
    else if (message.kind === 'failed') listening.reject(new Error(message.message))
    else thread.postMessage({ id: message.id, health: health() } satisfies ToHealth)
  })
  thread.on('error', error => listening.reject(error))
  const turning = setInterval(turn, turnsEveryMs).unref()
  const close = (): void => {
    clearInterval(turning)
    void thread.terminate()
  }
  try {
    const port = await listening.promise
    // It does not keep the worker alive.
    thread.unref()
    return { address: { host: address.host, port }, close }
  } catch (error) {
    close()
    throw new Error(`${formatAddress(address)}, the address of the worker's health, cannot be listened on: ${(error as Error).message}`)
  }
}
