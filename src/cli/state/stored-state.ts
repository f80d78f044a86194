import { randomUUID } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import type { Client } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { describeHolder, type HeldLock, type LockInfo, type OrphanInfo, type VersionInfo } from '../../stores/state/index.ts'
import { CliError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'

export type LockNow = HeldLock & { info: LockInfo }

/** The state of one Stack, as the server's state store has it. */
export class StoredState {
  readonly #client: Client
  readonly #path: string
  readonly #name: string

  constructor(client: Client, namespace: string, stack: string) {
    this.#client = client
    this.#name = `${namespace}/${stack}`
    this.#path = `/state/${encodeURIComponent(namespace)}/${encodeURIComponent(stack)}`
  }

  async versions(): Promise<VersionInfo[]> {
    return ((await this.#json('/versions')) as { versions: VersionInfo[] }).versions
  }

  /** What was refused, and kept aside (invariant 3). */
  async orphans(): Promise<OrphanInfo[]> {
    return ((await this.#json('/orphans')) as { orphans: OrphanInfo[] }).orphans
  }

  async lockNow(): Promise<LockNow | undefined> {
    const lock = (await this.#json('/lock')) as Partial<LockNow>
    return lock.holder ? (lock as LockNow) : undefined
  }

  /** The content of a version or an orphan; of the current state without a number. Empty: there is none. */
  async read(number?: number, of: 'versions' | 'orphans' = 'versions'): Promise<string> {
    try {
      const response = await this.#client.request({
        method: 'GET',
        path: number === undefined ? this.#path : `${this.#path}/${of}/${number}`,
      })
      return await response.text()
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 404 || number === undefined) throw await this.#told(error)
      const known = (of === 'versions' ? await this.versions() : await this.orphans()).map(({ version }) => version)
      const what = of === 'versions' ? 'version' : 'orphaned version'
      const shown = known.slice(0, 10).join(', ')
      throw new CliError(`stack ${this.#name} has no ${what} ${number}`, {
        exitCode: exitCodes.notFound,
        hint: known.length === 0 ? `it has no ${what} at all` : `it has ${shown}${known.length > 10 ? ', …' : ''}`,
      })
    }
  }

  /** Takes the lock for a person. @throws {CliError} refused, naming the holder. */
  async lock(operation: string): Promise<LockInfo> {
    const info: LockInfo = {
      ID: randomUUID(),
      Operation: operation,
      Who: `${userInfo().username}@${hostname()}`,
      Created: new Date().toISOString(),
      Path: this.#name,
    }
    await this.#send('LOCK', '', JSON.stringify(info))
    return info
  }

  async unlock(id: string): Promise<void> {
    await this.#send('UNLOCK', '', JSON.stringify({ ID: id }))
  }

  /** Makes `content` the current state, under a lock of its own. Returns its version. */
  async write(operation: string, makeContent: () => Promise<string>): Promise<number> {
    const { ID } = await this.lock(operation)
    try {
      const response = await this.#send('POST', `?ID=${encodeURIComponent(ID)}`, await makeContent())
      return ((await response.json()) as { version: number }).version
    } finally {
      await this.unlock(ID)
    }
  }

  async #json(path: string): Promise<unknown> {
    try {
      return await (await this.#client.request({ method: 'GET', path: this.#path + path })).json()
    } catch (error) {
      throw await this.#told(error)
    }
  }

  async #send(method: string, query: string, body: string) {
    try {
      // Never sent twice: the second LOCK of a lost answer would find the lock taken.
      return await this.#client.request({
        ...{ method, path: this.#path + query, body, idempotent: false },
        headers: { 'content-type': 'application/json' },
      })
    } catch (error) {
      throw await this.#told(error)
    }
  }

  /** The store answers in its own form; who holds the lock is asked for, as it may be a long story. */
  async #told(error: unknown): Promise<unknown> {
    if (!(error instanceof StatusError)) return error
    if (error.code === 423 || error.code === 409) {
      const lock = await this.lockNow().catch(() => undefined)
      const holder = lock ? describeHolder(lock.holder) : 'nobody any more'
      return new CliError(`the state of stack ${this.#name} is locked: held by ${holder}`, {
        exitCode: exitCodes.refused,
        hint: hintFor(lock),
      })
    }
    const answer = error.details?.causes?.[0]?.message ?? ''
    const [, said] = /"message":"((?:[^"\\]|\\.)*)"/.exec(answer) ?? []
    if (said === undefined) return error
    const exitCode = error.code === 404 ? exitCodes.notFound : exitCodes.refused
    return new CliError(`state of stack ${this.#name}: ${JSON.parse(`"${said}"`)}`, { exitCode })
  }
}

export function hintFor(lock: LockNow | undefined): string {
  if (lock === undefined) return 'try again'
  return lock.holder.kind === 'Run'
    ? `wait for it, or stop it: oarlock cancel run/${lock.holder.runName}`
    : 'if whoever took it is gone, "oarlock state unlock" releases it'
}
