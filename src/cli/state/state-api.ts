import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { oarlockCommand } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import {
  describeHolder,
  type Fence,
  type HeldLock,
  type LockInfo,
  type OrphanInfo,
  type TokenRotation,
  type VersionInfo,
} from '../../stores/state/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { storeError } from '../store-error.ts'
import { userName } from '../user-name.ts'
import type { StateKind } from './state-kind.ts'

export type CurrentLock = HeldLock & { info: LockInfo }

/** The state has a journal that the store does not understand completely. */
export class UnreadableStateError extends CliError {}

/** Client of the server's state store for one Stack. */
export class StateApi {
  readonly #client: Client
  readonly #path: string
  readonly #name: string
  readonly #kind: StateKind

  /** @param kind of the current state that is read and written; versions are of any kind. */
  constructor(client: Client, namespace: string, stack: string, kind: StateKind = 'terraform') {
    this.#client = client
    this.#kind = kind
    this.#name = `${namespace}/${stack}`
    this.#path = `/state/${encodeURIComponent(namespace)}/${encodeURIComponent(stack)}`
  }

  async versions(): Promise<VersionInfo[]> {
    return ((await this.#json('/versions')) as { versions: VersionInfo[] }).versions
  }

  /** Rejected writes, which are stored as orphaned versions (invariant 3). */
  async orphans(): Promise<OrphanInfo[]> {
    return ((await this.#json('/orphans')) as { orphans: OrphanInfo[] }).orphans
  }

  async currentLock(): Promise<CurrentLock | undefined> {
    const lock = (await this.#json('/lock')) as Partial<CurrentLock>
    return lock.holder ? (lock as CurrentLock) : undefined
  }

  /** The content of a version or an orphan, or of the current state without a number; empty if there is none. */
  async read(number?: number, list: 'versions' | 'orphans' = 'versions'): Promise<string> {
    try {
      const response = await this.#client.request({
        method: 'GET',
        ...(number === undefined ? { path: this.#path, query: this.#query } : { path: `${this.#path}/${list}/${number}` }),
      })
      return await response.text()
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 404 || number === undefined) throw await this.#toCliError(error)
      const known = (list === 'versions' ? await this.versions() : await this.orphans()).map(({ version }) => version)
      const noun = list === 'versions' ? 'version' : 'orphaned version'
      const listed = known.slice(0, 10).join(', ')
      throw new CliError(`stack ${this.#name} has no ${noun} ${number}`, {
        exitCode: exitCodes.notFound,
        hint: known.length === 0 ? `no ${noun} is stored` : `stored ${noun}s: ${listed}${known.length > 10 ? ', …' : ''}`,
      })
    }
  }

  /** The current state, which a user replaces: empty if there is none, and if its journal cannot be read, which no content conflicts with. */
  async readReplaced(): Promise<string> {
    try {
      return await this.read()
    } catch (error) {
      if (error instanceof UnreadableStateError) return ''
      throw error
    }
  }

  /** Locks the state for a user. @throws {CliError} with the holder if it is locked. */
  async lock(operation: string): Promise<LockInfo> {
    const info: LockInfo = {
      ID: randomUUID(),
      Operation: operation,
      Who: `${userName()}@${hostname()}`,
      Created: new Date().toISOString(),
      Path: this.#name,
    }
    await this.#send('LOCK', '', JSON.stringify(info))
    return info
  }

  async unlock(id: string): Promise<void> {
    await this.#send('UNLOCK', '', JSON.stringify({ ID: id }))
  }

  /** Makes the content the current state while it holds the lock. Returns its version. */
  async write(operation: string, createContent: () => Promise<string>): Promise<number> {
    const { ID } = await this.lock(operation)
    try {
      const kind = this.#kind === 'terraform' ? '' : `&kind=${this.#kind}`
      const response = await this.#send('POST', `?ID=${encodeURIComponent(ID)}${kind}`, await createContent())
      return ((await response.json()) as { version: number }).version
    } finally {
      await this.unlock(ID)
    }
  }

  /** Makes the newest state, or none, current for Runs although a Run has stored a newer one. Returns its version. */
  async accept(): Promise<number> {
    return ((await (await this.#send('POST', '/accept', '')).json()) as { version: number }).version
  }

  /** Decrypts values that the store has encrypted for this Stack, in base64. At most 10,000. */
  async decrypt(values: readonly string[]): Promise<string[]> {
    return ((await (await this.#send('POST', '/decrypt', JSON.stringify({ values }))).json()) as { values: string[] }).values
  }

  async fence(): Promise<Fence> {
    return (await this.#json('/fence')) as Fence
  }

  /** The Run after `lastEpoch` can write, and none up to it. `force`: although a Run holds the lock. */
  async resetFence(lastEpoch: number, force: boolean): Promise<void> {
    await this.#send('PUT', `/fence?lastEpoch=${lastEpoch}${force ? '&force=true' : ''}`, '')
  }

  async token(): Promise<string> {
    return ((await this.#json('/token')) as { token: string }).token
  }

  /** Replaces the Stack's token; the one before stays valid for `graceSeconds`. */
  async rotateToken(graceSeconds: number): Promise<TokenRotation> {
    return (await (await this.#send('POST', `/token?graceSeconds=${graceSeconds}`, '')).json()) as TokenRotation
  }

  get #query(): Record<string, string> {
    return this.#kind === 'terraform' ? {} : { kind: this.#kind }
  }

  async #json(path: string): Promise<unknown> {
    try {
      return await (await this.#client.request({ method: 'GET', path: this.#path + path })).json()
    } catch (error) {
      throw await this.#toCliError(error)
    }
  }

  async #send(method: string, query: string, body: string) {
    try {
      // Not retried: if the response is lost, a second LOCK would find the lock held.
      return await this.#client.request({
        ...{ method, path: this.#path + query, body, idempotent: false },
        headers: { 'content-type': 'application/json' },
      })
    } catch (error) {
      throw await this.#toCliError(error)
    }
  }

  /** Converts an error response of the store. For a held lock the holder is queried, because the response may be truncated. */
  async #toCliError(error: unknown): Promise<unknown> {
    if (!(error instanceof StatusError)) return error
    if (error.code === 409 && error.message.includes(unreadable)) {
      const hint =
        'upgrade Oarlock, upload a state with "oarlock state push", or roll back to an earlier version: the journal is kept as an orphaned version'
      return new UnreadableStateError(`the state of stack ${this.#name} cannot be read: ${error.message}`, {
        exitCode: exitCodes.rejected,
        hint,
      })
    }
    if (error.code === 423 || error.code === 409) {
      const lock = await this.currentLock().catch(() => undefined)
      const holder = lock ? `: held by ${describeHolder(lock.holder)}` : ', but the lock has been released meanwhile'
      return new CliError(`the state of stack ${this.#name} is locked${holder}`, {
        exitCode: exitCodes.rejected,
        hint: unlockHint(lock, this.#name),
      })
    }
    return storeError(error, `state of stack ${this.#name}`)
  }
}

/** In the message of `JournalUnreadable`: a client of the API server gets the code of the stores as a part of the message. */
const unreadable = 'cannot be read by this version of Oarlock'

/** @param key NAMESPACE/NAME of the Stack. */
export function unlockHint(lock: CurrentLock | undefined, key: string): string {
  if (lock === undefined) return 'retry the command'
  const [namespace, name = ''] = key.split('/')
  return lock.holder.kind === 'Run'
    ? `wait for the Run, or cancel it: ${oarlockCommand('cancel', { name: `run/${lock.holder.runName}`, namespace })}`
    : `wait for the holder, or release the lock: ${oarlockCommand('state unlock', { name, namespace })}`
}
