import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../../kubernetes/client/index.ts'
import { jitteredDelayMs } from '../../kubernetes/util/index.ts'

/** A partition that reviews the token of the worker. */
export type WarmedPartition = { readonly name: string; readonly server: string; readonly caCertificate: string | undefined }

export type TokenReviewWarmupOptions = {
  token(): string
  /** The partitions of Tenants, as far as they are known. */
  partitions(): readonly WarmedPartition[]
  /** Reads the partitions again. */
  refresh(): Promise<unknown>
  readonly log: { warn(fields: object, message: string): void }
  /** Delays between attempts at a partition that does not accept the token. Default: 1,000 to 60,000. */
  readonly backoff?: { readonly minMs: number; readonly maxMs: number }
}

type Attempt = { readonly server: string; readonly token: string; readonly failures: number; readonly nextAtMs: number }

/** How often the token is shown to a partition that has accepted it: each may forget it when it is started again. */
const repeatMs = 600_000
/** Whether the token or a partition has changed is looked at this often. */
const checkMs = 30_000
const requestTimeoutMs = 10_000
/** Partitions at a time: one that is paused must not delay the others by its timeout. */
const maxConcurrent = 4

/**
 * Shows the token of a worker to every partition of Tenants. A partition has a token reviewed by home, and remembers the result: one that it has never seen
 * would be rejected while home does not answer, and with it the first Run from there.
 */
export class TokenReviewWarmup {
  readonly #options: TokenReviewWarmupOptions
  readonly #stopping = new AbortController()
  /** By name of the partition: the last attempt. */
  readonly #attempts = new Map<string, Attempt>()
  #readAtMs = performance.now()
  #running: Promise<void> | undefined

  constructor(options: TokenReviewWarmupOptions) {
    this.#options = options
  }

  /** Now, every 10 minutes, and when the token or the address of a partition has changed; with backoff where it fails. Until {@link close}. */
  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      await this.#showAll()
      const dueInMs = Math.min(checkMs, ...this.#attempts.values().map(({ nextAtMs }) => nextAtMs - performance.now()))
      await delay(Math.max(0, dueInMs), undefined, { signal, ref: false }).catch(() => undefined)
      if (signal.aborted || performance.now() - this.#readAtMs < repeatMs) continue
      this.#readAtMs = performance.now()
      // With home down the partitions that are known are shown it.
      await this.#options.refresh().catch(() => undefined)
    }
  }

  async #showAll(): Promise<void> {
    const token = this.#options.token()
    const partitions = this.#options.partitions()
    const names = new Set(partitions.map(({ name }) => name))
    for (const name of this.#attempts.keys()) if (!names.has(name)) this.#attempts.delete(name)
    const due = partitions.filter(partition => this.#isDue(partition, token)).values()
    await Promise.all(
      Array.from({ length: maxConcurrent }, async () => {
        for (const partition of due) await this.#show(partition, token)
      }),
    )
  }

  #isDue({ name, server }: WarmedPartition, token: string): boolean {
    const last = this.#attempts.get(name)
    return !last || last.server !== server || last.token !== token || last.nextAtMs <= performance.now()
  }

  async #show(partition: WarmedPartition, token: string): Promise<void> {
    if (this.#stopping.signal.aborted) return
    const { backoff = { minMs: 1_000, maxMs: 60_000 }, log } = this.#options
    const { name, server } = partition
    const last = this.#attempts.get(name)
    let failures = 0
    try {
      await review(partition, token, this.#stopping.signal)
    } catch (error) {
      if (this.#stopping.signal.aborted) return
      failures = last?.token === token && last.server === server ? last.failures + 1 : 1
      if (failures === 1)
        log.warn({ partition: name, error: String(error) }, 'a partition does not know the credential of this worker yet, retrying')
    }
    const inMs = failures === 0 ? repeatMs : jitteredDelayMs(failures, backoff, Math.random())
    this.#attempts.set(name, { server, token, failures, nextAtMs: performance.now() + inMs })
  }
}

/** Any request that needs a valid token would do. */
async function review({ server, caCertificate }: WarmedPartition, token: string, signal: AbortSignal): Promise<void> {
  const client = await createClient({ cluster: { server, caCertificate, token }, userAgent: 'oarlock-worker', connections: 1 })
  try {
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    await client.request({ method: 'POST', path, body, timeoutMs: requestTimeoutMs, signal })
  } finally {
    await client.close()
  }
}
