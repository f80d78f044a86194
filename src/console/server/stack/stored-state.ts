import { randomUUID } from 'node:crypto'
import type { Stack } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { badRequest, StatusError } from '../../../kubernetes/object/index.ts'
import type { HeldLock, OrphanInfo, VersionInfo } from '../../../stores/state/index.ts'

/** A larger version is not read here: several times its size is needed to parse it. */
const maxReadBytes = 16 * 1024 * 1024

/** The bytes of versions together. What the open journal of an update of Pulumi results in is known only when it is read: Infinity. */
export const sizeOf = (...versions: readonly (VersionInfo | undefined)[]): number =>
  versions.reduce((sum, version) => sum + (version?.journalEntries === undefined ? (version?.size ?? 0) : Infinity), 0)

/** Which kind of state the engine of a Stack has. */
export const stateKindOf = ({ spec }: Pick<Stack, 'spec'>): 'terraform' | 'pulumi' | 'inventory' =>
  spec.engine === 'pulumi' ? 'pulumi' : spec.engine === 'manifests' ? 'inventory' : 'terraform'

/** The stored states of one Stack, with the rights of the user. Every method throws the StatusError of the store. */
export class StoredState {
  readonly #client: Client
  readonly #path: string
  readonly #key: string

  constructor({ client, namespace, name }: { readonly client: Client; readonly namespace: string; readonly name: string }) {
    this.#client = client
    this.#key = `${namespace}/${name}`
    this.#path = `/state/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
  }

  /** The newest first. */
  async versions(): Promise<VersionInfo[]> {
    const { versions } = (await this.#get('/versions')) as { versions: VersionInfo[] }
    return versions.toSorted((a, b) => b.version - a.version)
  }

  /** Rejected writes (invariant 3), the newest first. */
  async orphans(): Promise<OrphanInfo[]> {
    const { orphans } = (await this.#get('/orphans')) as { orphans: OrphanInfo[] }
    return orphans.toSorted((a, b) => b.version - a.version)
  }

  async lock(): Promise<HeldLock | undefined> {
    const lock = (await this.#get('/lock')) as Partial<HeldLock>
    return lock.holder ? (lock as HeldLock) : undefined
  }

  /** The content of a stored version; empty if it is a deletion. */
  async read({ version, size }: VersionInfo): Promise<string> {
    const check = (bytes: number) => {
      if (bytes > maxReadBytes)
        throw badRequest(`version ${version} has ${bytes} bytes, and the console reads at most ${maxReadBytes}: use "oarlock state pull"`)
    }
    check(size)
    const content = await (await this.#client.request({ method: 'GET', path: `${this.#path}/versions/${version}` })).text()
    // What a journal results in has another size.
    check(content.length)
    return content
  }

  /**
   * Makes a content the current state while it holds the lock. Returns its version.
   * @param create is called with the lock held.
   */
  async write(kind: 'terraform' | 'pulumi', user: string, operation: string, create: () => Promise<string>): Promise<number> {
    const id = randomUUID()
    const info = { ID: id, Operation: operation, Who: user, Created: new Date().toISOString(), Path: this.#key }
    await this.#send('LOCK', '', info)
    try {
      const query = `?ID=${encodeURIComponent(id)}${kind === 'pulumi' ? '&kind=pulumi' : ''}`
      return ((await (await this.#send('POST', query, await create())).json()) as { version: number }).version
    } finally {
      await this.#send('UNLOCK', '', { ID: id })
    }
  }

  async #get(path: string): Promise<unknown> {
    return await (await this.#client.request({ method: 'GET', path: this.#path + path })).json()
  }

  async #send(method: string, query: string, body: unknown) {
    // Not retried: if the response is lost, a second LOCK would find the lock held.
    return await this.#client.request({
      ...{ method, path: this.#path + query, body: typeof body === 'string' ? body : JSON.stringify(body), idempotent: false },
      headers: { 'content-type': 'application/json' },
    })
  }
}

/** @throws {StatusError} if Oarlock does not store the state of the Stack. */
export function expectManaged({ spec, metadata }: Pick<Stack, 'spec' | 'metadata'>): void {
  if (spec.state === 'External')
    throw new StatusError('Conflict', `Oarlock does not store the state of stack/${metadata.name} (spec.state: External)`)
}
