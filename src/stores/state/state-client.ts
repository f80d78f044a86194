import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answered, RequestSender } from '../http/index.ts'
import type { LockHolder } from './lock-holder.ts'
import { LockedError, StaleEpochError, StateClientError } from './state-client-error.ts'

export type StateClientOptions = {
  /** `https://host:port` or `http://host:port`. */
  baseUrl: string
  /** PEM of the CA that signed the server's certificate. Default: the system's. */
  caCertificate?: string
  /** Connections to the store that are shared with others. Default: its own, with `caCertificate`. */
  agent?: Agent
  token: string | (() => string)
  namespace: string
  stack: string
  runName: string
  epoch: number
  /** How long a call tries again when the store does not answer. Default 60,000. A call's `deadlineMs` overrides it. */
  deadlineMs?: number
  /** How long one attempt may stand still. Default 15,000. */
  attemptMs?: number
}

export type CallOptions = { deadlineMs?: number; signal?: AbortSignal }
export type ClientVersion = { version: number; epoch: number; bytes: Buffer }

/**
 * The worker's way to the state store, for one Run. Calls try again with backoff until their deadline; writes are sent one after another,
 * and a late copy of an older write cannot overtake a newer one (`Oarlock-Sequence`).
 * Rejects with {@link StaleEpochError}, {@link LockedError}, {@link StateClientError}, or the signal's reason.
 */
export class StateClient {
  readonly #options: StateClientOptions
  readonly #sender: RequestSender
  readonly #path: string
  #lastWrite: Promise<unknown> = Promise.resolve()

  constructor(options: StateClientOptions) {
    const { caCertificate, agent, namespace, stack, runName } = options
    this.#options = options
    this.#sender = new RequestSender({ connections: 4, caCertificate, agent })
    this.#path = `/state/${encodeURIComponent(namespace)}/${encodeURIComponent(stack)}/run/${encodeURIComponent(runName)}`
  }

  /** Takes the stack's lock for this Run. From then on older epochs are refused. `broke` is a dead holder whose lock was taken over. */
  async lock(options?: CallOptions): Promise<{ broke?: LockHolder }> {
    const { body } = await this.#call('POST', '/lock', undefined, options)
    const { broke } = JSON.parse(body.toString()) as { broke?: LockHolder }
    return broke === undefined ? {} : { broke }
  }

  /** Gives the lock back. Repeating it is safe. */
  async unlock(options?: CallOptions): Promise<void> {
    await this.#call('POST', '/unlock', undefined, options)
  }

  /** The newest state, or undefined when there is none. */
  async read(options?: CallOptions): Promise<ClientVersion | undefined> {
    return await this.#read('/state', options)
  }

  /** Stores a version; resolves with its number when it is on disk. The same content again makes no new version. */
  async write(bytes: Uint8Array, options?: CallOptions): Promise<number> {
    return await this.#write('/state', bytes, options)
  }

  async readInventory(options?: CallOptions): Promise<ClientVersion | undefined> {
    return await this.#read('/inventory', options)
  }

  async writeInventory(bytes: Uint8Array, options?: CallOptions): Promise<number> {
    return await this.#write('/inventory', bytes, options)
  }

  async putPlan(digest: string, bytes: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', `/plan/${encodeURIComponent(digest)}`, { bytes }, options)
  }

  /** The plan kept under `digest`, or undefined when there is none. */
  async getPlan(digest: string, options?: CallOptions): Promise<Buffer | undefined> {
    const { status, body } = await this.#call('GET', `/plan/${encodeURIComponent(digest)}`, undefined, options, [404])
    return status === 404 ? undefined : body
  }

  /** Drops its own connections. Calls that are under way fail. */
  async close(): Promise<void> {
    this.#sender.destroy()
  }

  async #read(path: string, options: CallOptions | undefined): Promise<ClientVersion | undefined> {
    const { status, headers, body } = await this.#call('GET', path, undefined, options)
    if (status === 204) return undefined
    return { version: Number(headers['oarlock-version']), epoch: Number(headers['oarlock-epoch']), bytes: body }
  }

  #write(path: string, bytes: Uint8Array, options: CallOptions | undefined): Promise<number> {
    const send = async () => {
      const { body } = await this.#call('PUT', path, { bytes, sequence: nextSequence() }, options)
      return (JSON.parse(body.toString()) as { version: number }).version
    }
    const written = this.#lastWrite.then(send, send)
    this.#lastWrite = written.catch(() => undefined)
    return written
  }

  async #call(
    ...[method, path, content, options = {}, fine = []]: [
      'GET' | 'PUT' | 'POST',
      string,
      { bytes: Uint8Array; sequence?: number } | undefined,
      CallOptions?,
      number[]?,
    ]
  ): Promise<Answered> {
    const { deadlineMs = this.#options.deadlineMs ?? 60_000, signal } = options
    const endMs = performance.now() + deadlineMs
    for (let attempt = 0; ; attempt++) {
      signal?.throwIfAborted()
      const answer = await this.#attempt(method, path, content, signal).catch(error => {
        signal?.throwIfAborted()
        return new StateClientError(
          0,
          'Unreachable',
          `${method} ${path}: no answer from ${this.#options.baseUrl}: ${(error as Error).message}`,
          { cause: error },
        )
      })
      if (!(answer instanceof Error) && (answer.status < 300 || fine.includes(answer.status))) return answer
      const error = answer instanceof Error ? answer : toError(method, path, answer)
      const waitMs = Math.min(100 * 2 ** attempt, 3_000) * (0.5 + Math.random() / 2)
      if (!isTransient(error) || performance.now() + waitMs >= endMs) throw error
      await sleep(waitMs, undefined, { signal })
    }
  }

  async #attempt(
    ...[method, path, content, signal]: [
      'GET' | 'PUT' | 'POST',
      string,
      { bytes: Uint8Array; sequence?: number } | undefined,
      AbortSignal | undefined,
    ]
  ): Promise<Answered> {
    const { baseUrl, token, epoch, attemptMs = 15_000 } = this.#options
    return await this.#sender.send({
      ...{ method, signal, silenceMs: attemptMs, body: content?.bytes },
      url: `${baseUrl.replace(/\/+$/, '')}${this.#path}${path}`,
      headers: {
        authorization: `Bearer ${typeof token === 'string' ? token : token()}`,
        'oarlock-epoch': String(epoch),
        ...(content?.sequence !== undefined && { 'oarlock-sequence': String(content.sequence) }),
      },
    })
  }
}

/** What trying again does not change, though the status is the server's fault. */
const isPermanent = (code: string) => code === 'Corrupt' || code === 'StateKeyMismatch' || code === 'DataTooNew'

// 507 too: the disk may get room again while the Run waits, and giving up loses state.
const isTransient = ({ status, code }: StateClientError) =>
  status === 0 || status === 408 || status === 429 || (status >= 500 && !isPermanent(code))

function toError(method: string, path: string, { status, body }: Answered): StateClientError {
  type Body = { error?: { code?: string; message?: string }; orphan?: number; holder?: LockHolder }
  let answer: Body = {}
  try {
    answer = JSON.parse(body.toString()) as Body
  } catch {
    // Not from the store: a proxy, perhaps. The status says enough.
  }
  const { code = 'BadAnswer', message = `answered ${status}` } = answer.error ?? {}
  const text = `${method} ${path}: ${message}`
  if (code === 'StaleEpoch') return new StaleEpochError(text, answer.orphan)
  if (code === 'Locked' || code === 'NotLockHolder') return new LockedError(status, text, answer.holder, answer.orphan)
  return new StateClientError(status, code, text)
}

let lastSequence = 0

/** Microseconds of the host's monotonic clock: rises over all clients of a Run, which never leaves its host. */
function nextSequence(): number {
  lastSequence = Math.max(lastSequence + 1, Number(process.hrtime.bigint() / 1_000n))
  return lastSequence
}
