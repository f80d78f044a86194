import { randomUUID } from 'node:crypto'
import { type KubeObject, rfc3339 } from '../../kube/index.ts'
import type { Registry } from '../registry/index.ts'
import { deleteEntry, isFinished, mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEvent, type Table } from '../storage/index.ts'
import type { WorkQueue } from './work-queue.ts'

const always = ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'oarlock-system']
const finalizer = 'kubernetes'

/** Namespaces that are always there, and the way of a namespace out: its content first, then itself. */
export class Namespaces {
  readonly #store: Store
  readonly #registry: Registry
  readonly #queue: WorkQueue
  readonly #table: Table
  readonly #terminating = new Set<string>()

  constructor(store: Store, registry: Registry, queue: WorkQueue) {
    this.#store = store
    this.#registry = registry
    this.#queue = queue
    this.#table = store.table('namespaces')
  }

  async start(): Promise<void> {
    await Promise.all(always.map(name => this.#ensure(name)))
    for (const entry of this.#table.values()) if (entry.deleting) this.#empty(entry.name)
  }

  follow(table: Table, events: readonly StoredEvent[]): void {
    for (const { type, entry } of events) {
      if (table === this.#table) {
        if (type === 'DELETED') this.#terminating.delete(entry.name)
        else if (entry.deleting) this.#empty(entry.name)
      } else if (type === 'DELETED' && this.#terminating.has(entry.namespace)) this.#empty(entry.namespace)
    }
  }

  async #ensure(name: string): Promise<void> {
    await mutate(this.#store, this.#table, name, head => {
      if (head) return { answer: undefined }
      const metadata = {
        name,
        uid: randomUUID(),
        resourceVersion: '',
        creationTimestamp: rfc3339(this.#store.nowMs),
        labels: { 'kubernetes.io/metadata.name': name },
      }
      const namespace: KubeObject = {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata,
        spec: { finalizers: [finalizer] },
        status: { phase: 'Active' },
      }
      return { put: namespace }
    })
  }

  #empty(name: string): void {
    this.#terminating.add(name)
    this.#queue.add(`namespace ${name}`, () => this.#removeContent(name))
  }

  // No create can slip in behind us: creates look at the newest version of the namespace, durable or not, and every
  // create that was let in before is durable before the deletion is, because commits keep the order of writes.
  async #removeContent(name: string): Promise<void> {
    if (!this.#table.get(name)?.deleting) return
    const done: Promise<void>[] = []
    for (const kind of this.#registry.storedKinds()) {
      if (!kind.namespaced) continue
      const table = this.#store.table(kind.storageName)
      for (const entry of table.inNamespace(name)) {
        if (!entry.deleting) done.push(deleteEntry(this.#store, kind, table, entry, { propagation: undefined, dryRun: false }))
      }
    }
    await Promise.all(done)
    for (const kind of this.#registry.storedKinds()) {
      // What has finalizers is waited for; its deletion brings us back here.
      if (kind.namespaced && this.#store.table(kind.storageName).inNamespace(name).length > 0) return
    }
    await mutate(this.#store, this.#table, name, head => {
      const namespace = head && parseEntry(head)
      if (!namespace?.metadata.deletionTimestamp) return { answer: undefined }
      const spec = (namespace.spec ?? {}) as { finalizers?: string[] }
      if (!spec.finalizers?.includes(finalizer)) return { answer: undefined }
      const next: KubeObject = { ...namespace, spec: { ...spec, finalizers: spec.finalizers.filter(other => other !== finalizer) } }
      return isFinished(next) ? { remove: next } : { put: next }
    })
  }
}
