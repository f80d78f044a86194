import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { jitteredDelayMs, parseServerAddress } from '../../kubernetes/util/index.ts'
import { type HttpResponse, HttpSender } from '../http/index.ts'
import type { LockHolder } from './lock-holder.ts'
import { type RunInputObjects, runInputsErrorStatus, type StackOutputsData } from './run-inputs.ts'
import { LockedError, StaleEpochError, StateClientError } from './state-client-error.ts'
import type { NewestPulumi } from './state-types.ts'

export type StateClientOptions = {
  /** `https://host:port`, `http://host:port` or `unix:///path`. */
  baseUrl: string
  /** PEM of the CA of the server's certificate. Default: the system's CAs. */
  caCertificate?: string
  /** Shared connections to the store. Default: its own, with `caCertificate`. */
  agent?: Agent
  token: string | (() => string)
  namespace: string
  stack: string
  runName: string
  epoch: number
  /** How long a call is retried. Default 60,000. A call's `deadlineMs` overrides it. */
  deadlineMs?: number
  /** Idle timeout of one attempt. Default 15,000. */
  attemptMs?: number
}

export type CallOptions = { deadlineMs?: number; signal?: AbortSignal }
type Method = 'GET' | 'PUT' | 'POST' | 'DELETE'
type Content = { bytes: Uint8Array; sequence?: number; headers?: Record<string, string> }
export type ClientVersion = { version: number; epoch: number; bytes: Buffer }

/**
 * The worker's client of the state store, for one Run. Calls are retried with backoff until their deadline; writes are sent one after
 * another, and a delayed copy of an older write cannot replace a newer one (`Oarlock-Sequence`).
 * Rejects with {@link StaleEpochError}, {@link LockedError}, {@link StateClientError}, or the signal's reason.
 */
export class StateClient {
  readonly #options: StateClientOptions
  readonly #sender: HttpSender
  readonly #url: string
  #lastWrite: Promise<unknown> = Promise.resolve()
  #newestVersion: number | undefined

  constructor(options: StateClientOptions) {
    const { caCertificate, agent, namespace, stack, runName } = options
    this.#options = options
    const { baseUrl, socketPath } = parseServerAddress(options.baseUrl)
    this.#sender = new HttpSender({ connections: 4, caCertificate, socketPath, agent })
    this.#url = `${baseUrl}/state/${encodeURIComponent(namespace)}/${encodeURIComponent(stack)}/run/${encodeURIComponent(runName)}`
  }

  /** Acquires the stack's lock for this Run. From then on older epochs are rejected. `brokenHolder` is the holder whose abandoned lock was broken. */
  async lock(options?: CallOptions): Promise<{ brokenHolder?: LockHolder }> {
    const { body } = await this.#call('POST', '/lock', undefined, options)
    const { brokenHolder } = JSON.parse(body.toString()) as { brokenHolder?: LockHolder }
    return brokenHolder === undefined ? {} : { brokenHolder }
  }

  /** Releases the lock. Idempotent. */
  async unlock(options?: CallOptions): Promise<void> {
    await this.#call('POST', '/unlock', undefined, options)
  }

  /** The newest state, or undefined when there is none. */
  async read(options?: CallOptions): Promise<ClientVersion | undefined> {
    return await this.#read('/state', options)
  }

  /** Stores a version; resolves with its number when it is on disk. Unchanged content creates no version. */
  async write(bytes: Uint8Array, options?: CallOptions): Promise<number> {
    return await this.#write('/state', bytes, options)
  }

  /** The newest version that the store has acknowledged for this Run, of any kind. */
  get newestVersion(): number | undefined {
    return this.#newestVersion
  }

  async readInventory(options?: CallOptions): Promise<ClientVersion | undefined> {
    return await this.#read('/inventory', options)
  }

  async writeInventory(bytes: Uint8Array, options?: CallOptions): Promise<number> {
    return await this.#write('/inventory', bytes, options)
  }

  /** The newest state of Pulumi, as `pulumi stack export` writes it; of an update that was cut off, with all of its entries. */
  async readPulumiState(options?: CallOptions): Promise<ClientVersion | undefined> {
    return await this.#read('/pulumi', options)
  }

  /** The number of the newest state of Pulumi, and whether it is too large to add resources, without its content. */
  async readPulumiVersion(options?: CallOptions): Promise<NewestPulumi | undefined> {
    const { status, body } = await this.#call('GET', '/pulumi-version', undefined, options, [404])
    if (status === 404) {
      // A store of an earlier version of Oarlock.
      const newest = await this.readPulumiState(options)
      return newest && { version: newest.version, isFull: false }
    }
    const { version, isFull = false } = JSON.parse(body.toString()) as Partial<NewestPulumi>
    return version === undefined ? undefined : { version, isFull }
  }

  /** Stores a state of Pulumi. An open journal becomes a version before. With `update`, it replaces the version that the same update has stored. */
  async writePulumiState(bytes: Uint8Array, options?: CallOptions & { update?: number }): Promise<number> {
    const headers: Record<string, string> = options?.update === undefined ? {} : { 'oarlock-update': String(options.update) }
    return await this.#write('/pulumi', bytes, options, headers)
  }

  /**
   * Stores a batch of journal entries, `{"entries":[…]}` as the CLI sends it; resolves when all of them are on disk, with the number of the version that they
   * become. `update` is the number of the update in the Run, and higher than that of the update before. Sending the same entries again changes nothing.
   * Other codes: 413 `TooLarge` (the CLI splits the batch), 409 `StateFull` (operations may not begin; results in the batch are stored), 409 `JournalConflict`, `JournalClosed`, `JournalUnreadable`, `RunEnded`.
   */
  async appendJournal(update: number, batch: Uint8Array, options?: CallOptions & { cliVersion?: string }): Promise<number> {
    const headers: Record<string, string> = options?.cliVersion ? { 'oarlock-pulumi-version': options.cliVersion } : {}
    return await this.#inOrder(() => this.#call('POST', `/journal/${update}`, { bytes: batch, headers }, options))
  }

  /** The update has ended: its entries become a version, whose number is returned. Idempotent. Code 409 `JournalUnreadable`: they are kept as they are. */
  async completeJournal(update: number, options?: CallOptions): Promise<number> {
    return await this.#inOrder(() => this.#call('POST', `/journal/${update}/complete`, undefined, options))
  }

  /**
   * Keeps a state as an orphaned version that never becomes current, although this Run may hold the lock: it arrived after its update had ended or lost its
   * right to write. Content that is current already is not stored again.
   */
  async keepPulumiState(bytes: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', '/refused-pulumi', { bytes }, options)
  }

  /** As {@link keepPulumiState}, for a batch of journal entries. */
  async keepJournal(batch: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', '/refused-journal', { bytes: batch }, options)
  }

  /** Encrypts secrets for this Stack; at most 10,000 values. The result is stored in states and configurations. */
  async encrypt(values: readonly Uint8Array[], options?: CallOptions): Promise<Buffer[]> {
    return await this.#convert('/encrypt', values, options)
  }

  /** Decrypts what {@link encrypt} returned for this Stack, for any Run of it. Code 400 `DecryptionFailed` for other values. */
  async decrypt(values: readonly Uint8Array[], options?: CallOptions): Promise<Buffer[]> {
    return await this.#convert('/decrypt', values, options)
  }

  async putPlan(digest: string, bytes: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', `/plan/${encodeURIComponent(digest)}`, { bytes }, options)
  }

  /** The stored plan with this digest, or undefined when there is none. */
  async getPlan(digest: string, options?: CallOptions): Promise<Buffer | undefined> {
    const { status, body } = await this.#call('GET', `/plan/${encodeURIComponent(digest)}`, undefined, options, [404])
    return status === 404 ? undefined : body
  }

  /** Stores what the plan of this Run would change, as users read it. */
  async putDiff(bytes: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', '/diff', { bytes }, options)
  }

  /** Keeps what this Run applies, for the destruction of its Stack. Stores of earlier versions keep nothing. */
  async putConfiguration(bytes: Uint8Array, options?: CallOptions): Promise<void> {
    await this.#call('PUT', '/configuration', { bytes }, options, [404])
  }

  /** What a Run has applied last; undefined if none is stored. */
  async getConfiguration(options?: CallOptions): Promise<Buffer | undefined> {
    const { status, body } = await this.#call('GET', '/configuration', undefined, options, [404])
    return status === 404 ? undefined : body
  }

  /**
   * What this Run references. Other codes: 403 `InputsNotAllowed`, 409 `OutputsSecretTaken` (its outputs could not be stored), 413 `InputsTooLarge`.
   */
  async getInputs(options?: CallOptions): Promise<RunInputObjects> {
    const { body } = await this.#call('GET', '/inputs', undefined, options)
    return JSON.parse(body.toString()) as RunInputObjects
  }

  /** The outputs of a Stack that this Run references; undefined if it has none. */
  async getOutputs(stack: string, options?: CallOptions): Promise<StackOutputsData | undefined> {
    const { body } = await this.#call('GET', `/outputs/${encodeURIComponent(stack)}`, undefined, options)
    const outputs = JSON.parse(body.toString()) as Partial<StackOutputsData>
    return outputs.data && { ...outputs, data: outputs.data }
  }

  /** Stores the outputs of the Run's Stack. Other codes: 409 `OutputsSecretTaken`, 422 `OutputsRejected`. */
  async putOutputs(outputs: StackOutputsData, options?: CallOptions): Promise<void> {
    await this.#call('PUT', '/outputs', { bytes: Buffer.from(JSON.stringify(outputs)) }, options)
  }

  /** Deletes the outputs of the Run's Stack. Idempotent. */
  async deleteOutputs(options?: CallOptions): Promise<void> {
    await this.#call('DELETE', '/outputs', undefined, options)
  }

  /** Closes its own connections. Active calls fail. */
  async close(): Promise<void> {
    this.#sender.destroy()
  }

  async #read(path: string, options: CallOptions | undefined): Promise<ClientVersion | undefined> {
    const { status, headers, body } = await this.#call('GET', path, undefined, options)
    if (status === 204) return undefined
    return { version: Number(headers['oarlock-version']), epoch: Number(headers['oarlock-epoch']), bytes: body }
  }

  async #convert(path: string, values: readonly Uint8Array[], options: CallOptions | undefined): Promise<Buffer[]> {
    const base64 = values.map(value => Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'))
    const { body } = await this.#call('POST', path, { bytes: Buffer.from(JSON.stringify({ values: base64 })) }, options)
    return (JSON.parse(body.toString()) as { values: string[] }).values.map(value => Buffer.from(value, 'base64'))
  }

  #write(path: string, bytes: Uint8Array, options: CallOptions | undefined, headers: Record<string, string> = {}): Promise<number> {
    return this.#inOrder(() => this.#call('PUT', path, { bytes, sequence: nextSequence(), headers }, options))
  }

  /** Writes one after another. Resolves with the version that the store has acknowledged. */
  #inOrder(write: () => Promise<HttpResponse>): Promise<number> {
    const send = async () => {
      const { body } = await write()
      const { version } = JSON.parse(body.toString()) as { version: number }
      this.#newestVersion = Math.max(this.#newestVersion ?? 0, version)
      return version
    }
    const written = this.#lastWrite.then(send, send)
    this.#lastWrite = written.catch(() => undefined)
    return written
  }

  async #call(
    ...[method, path, content, options = {}, acceptedStatuses = []]: [Method, string, Content | undefined, CallOptions?, number[]?]
  ): Promise<HttpResponse> {
    const { deadlineMs = this.#options.deadlineMs ?? 60_000, signal } = options
    const endMs = performance.now() + deadlineMs
    for (let failures = 1; ; failures++) {
      signal?.throwIfAborted()
      const response = await this.#attempt(method, path, content, signal).catch(error => {
        signal?.throwIfAborted()
        return new StateClientError(
          0,
          'Unreachable',
          `${method} ${path}: no response from ${this.#options.baseUrl}: ${(error as Error).message}`,
          { cause: error },
        )
      })
      if (!(response instanceof Error) && (response.status < 300 || acceptedStatuses.includes(response.status))) return response
      const error = response instanceof Error ? response : toError(method, path, response)
      const delayMs = jitteredDelayMs(failures, retryBackoff, Math.random())
      if (!isTransient(error) || performance.now() + delayMs >= endMs) throw error
      await sleep(delayMs, undefined, { signal })
    }
  }

  async #attempt(
    ...[method, path, content, signal]: [Method, string, Content | undefined, AbortSignal | undefined]
  ): Promise<HttpResponse> {
    const { token, epoch, attemptMs = 15_000 } = this.#options
    return await this.#sender.send({
      ...{ method, signal, idleTimeoutMs: attemptMs, body: content?.bytes },
      url: `${this.#url}${path}`,
      headers: {
        authorization: `Bearer ${typeof token === 'string' ? token : token()}`,
        'oarlock-epoch': String(epoch),
        ...content?.headers,
        ...(content?.sequence !== undefined && { 'oarlock-sequence': String(content.sequence) }),
      },
    })
  }
}

/** 50–100 ms after the first failure, then 100–200 ms, up to 1.5–3 s. */
const retryBackoff = { minMs: 50, maxMs: 3_000 }

/** Server errors that a retry does not resolve. */
const isPermanent = (code: string) => code === 'Corrupt' || code === 'StateKeyMismatch' || code === 'DataTooNew'

// Including 507: space may become available while the Run waits, and giving up loses state.
const isTransient = ({ status, code }: StateClientError) =>
  status === 0 || status === 408 || status === 429 || (status >= 500 && !isPermanent(code))

function toError(method: string, path: string, { status, body }: HttpResponse): StateClientError {
  type Body = { error?: { code?: string; message?: string }; orphan?: number; holder?: LockHolder }
  let content: Body = {}
  try {
    content = JSON.parse(body.toString()) as Body
  } catch {
    // Not from the store, for example from a proxy: the status is sufficient.
  }
  const { code = 'InvalidResponse', message = `response status ${status}` } = content.error ?? {}
  const text = `${method} ${path}: ${message}`
  if (code === 'StaleEpoch') return new StaleEpochError(message, content.orphan)
  if (code === 'Locked' || code === 'NotLockHolder') return new LockedError(status, message, content.holder, content.orphan)
  // For users: the conditions of the Stack show it.
  if (
    code === 'StateMissing' ||
    code === 'StateRegressed' ||
    code === 'JournalUnreadable' ||
    code === 'StateFull' ||
    isRunInputsError(code)
  )
    return new StateClientError(status, code, message)
  return new StateClientError(status, code, text)
}

const isRunInputsError = (code: string) => code !== 'Unavailable' && Object.hasOwn(runInputsErrorStatus, code)

let lastSequence = 0

/** Microseconds of the host's monotonic clock: increasing over all clients of a Run, which never changes its host. */
function nextSequence(): number {
  lastSequence = Math.max(lastSequence + 1, Number(process.hrtime.bigint() / 1_000n))
  return lastSequence
}
