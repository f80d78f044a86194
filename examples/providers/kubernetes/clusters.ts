/** Clients of the other clusters: one for each kubeconfig, shared by the Objects that use it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ExternalRequest } from '../../../src/controllers/managed/index.ts'
import { type Client, createClient, secretResource } from '../../../src/kubernetes/client/index.ts'
import { type ObjectBody, providerConfigResource } from './kinds.ts'

/** The right to use a client; it is closed when it is replaced and no longer used. */
export type Connection = { readonly client: Client; release(): Promise<void> }

type Entry = { readonly secretVersion: string; readonly client: Client; users: number; isReplaced: boolean; usedMs: number }

/** A client that was not used for so long is closed: its Secret or its Objects may be gone. */
const idleMs = 900_000

export class Clusters {
  readonly #entries = new Map<string, Entry>()

  /** @throws {Error} naming the ProviderConfig, the Secret, or what is wrong in the kubeconfig. */
  async connect({ object, client: local, signal }: ExternalRequest<ObjectBody>): Promise<Connection> {
    const { namespace } = object.metadata
    const name = object.spec.providerConfigRef?.name ?? 'default'
    const config = await local.resource(providerConfigResource).getOrUndefined(name, { namespace, signal })
    if (!config) throw new Error(`ProviderConfig ${namespace}/${name} does not exist`)
    const { name: secretName, key = 'kubeconfig' } = config.spec.kubeconfigSecretRef
    const secret = await local.resource(secretResource).getOrUndefined(secretName, { namespace, signal })
    const encoded = secret?.data?.[key]
    if (!secret || !encoded)
      throw new Error(`ProviderConfig ${name} refers to key ${key} of Secret ${namespace}/${secretName}, which does not exist`)
    const id = JSON.stringify([namespace, secretName, key])
    const secretVersion = `${secret.metadata.uid} ${secret.metadata.resourceVersion}`
    const entry = this.#use(id, secretVersion) ?? this.#add(id, secretVersion, await clientOf(Buffer.from(encoded, 'base64')))
    return { client: entry.client, release: () => this.#release(entry) }
  }

  async close(): Promise<void> {
    const entries = [...this.#entries.values()]
    this.#entries.clear()
    await Promise.all(entries.map(({ client }) => client.close()))
  }

  #use(id: string, secretVersion: string): Entry | undefined {
    const entry = this.#entries.get(id)
    if (entry?.secretVersion !== secretVersion) return undefined
    entry.users++
    entry.usedMs = performance.now()
    return entry
  }

  #add(id: string, secretVersion: string, client: Client): Entry {
    // Another reconcile may have made one meanwhile.
    const other = this.#use(id, secretVersion)
    if (other) {
      void client.close()
      return other
    }
    this.#closeIdle()
    const before = this.#entries.get(id)
    const entry = { secretVersion, client, users: 1, isReplaced: false, usedMs: performance.now() }
    this.#entries.set(id, entry)
    if (before) {
      before.isReplaced = true
      if (before.users === 0) void before.client.close()
    }
    return entry
  }

  #closeIdle(): void {
    for (const [id, { client, users, usedMs }] of this.#entries) {
      if (users > 0 || performance.now() < usedMs + idleMs) continue
      this.#entries.delete(id)
      void client.close()
    }
  }

  async #release(entry: Entry): Promise<void> {
    entry.users--
    if (entry.isReplaced && entry.users === 0) await entry.client.close()
  }
}

/** The kubeconfig comes from a user: it may run no program and read no file of this process. */
async function clientOf(kubeconfig: Buffer): Promise<Client> {
  const directory = await mkdtemp(join(tmpdir(), 'provider-kubernetes-'))
  try {
    const path = join(directory, 'kubeconfig')
    await writeFile(path, kubeconfig, { mode: 0o600 })
    return await createClient({ kubeconfig: path, selfContained: true, userAgent: 'provider-kubernetes', connections: 2 })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
