import { randomUUID } from 'node:crypto'
import { trackUpdate } from '../../apply/index.ts'
import { type Condition, equalJson, type KubeObject, rfc3339 } from '../../object/index.ts'
import { yieldEvery } from '../fairness/index.ts'
import type { Kind, Registry } from '../registry/index.ts'
import { deleteEntry, isDeletionComplete, mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEvent, type Table } from '../storage/index.ts'
import { namespaceConditions, type RemainingContent } from './namespace-conditions.ts'
import type { TaskQueue } from './task-queue.ts'

const systemNamespaces = ['default', 'kube-system', 'kube-public', 'kube-node-lease', 'oarlock-system']
const finalizer = 'kubernetes'
/** The field manager of the conditions, which tools know. */
const manager = 'kube-controller-manager'

/** Creates the system namespaces, and finalizes namespaces: deletes their content, then the namespace. */
export class NamespaceController {
  readonly #store: Store
  readonly #registry: Registry
  readonly #queue: TaskQueue
  readonly #table: Table
  readonly #terminating = new Set<string>()

  constructor(store: Store, registry: Registry, queue: TaskQueue) {
    this.#store = store
    this.#registry = registry
    this.#queue = queue
    this.#table = store.table('namespaces')
  }

  async start(): Promise<void> {
    await Promise.all(systemNamespaces.map(name => this.#ensureNamespace(name)))
    for (const entry of this.#table.values()) if (entry.deleting) this.#finalize(entry.name)
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    for (const { type, entry } of events) {
      if (table === this.#table) {
        if (type === 'DELETED') this.#terminating.delete(entry.name)
        else if (entry.deleting) this.#finalize(entry.name)
        // Deleted, or changed: a finalizer may have been removed.
      } else if (type !== 'ADDED' && this.#terminating.has(entry.namespace)) this.#finalize(entry.namespace)
    }
  }

  async #ensureNamespace(name: string): Promise<void> {
    await mutate(this.#store, this.#table, name, head => {
      if (head) return { result: undefined }
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

  #finalize(name: string): void {
    this.#terminating.add(name)
    this.#queue.add(`namespace ${name}`, () => this.#deleteContent(name))
  }

  // No create can follow this: a create reads the newest version of the namespace, durable or not, and a create that was accepted before is
  // durable before the deletion is, because commits keep the order of writes.
  async #deleteContent(name: string): Promise<void> {
    if (!this.#table.get(name)?.deleting) return
    const kinds = [...this.#registry.storedKinds()].filter(kind => kind.namespaced)
    const isPod = (kind: Kind) => kind.storageName === 'pods'
    // Pods are deleted first: the objects that they use must exist until then.
    const failures = await this.#deleteAll(name, kinds.filter(isPod))
    if (!this.#hasAny(name, kinds.filter(isPod)))
      failures.push(
        ...(await this.#deleteAll(
          name,
          kinds.filter(kind => !isPod(kind)),
        )),
      )
    const remaining = { ...(await this.#countRemaining(name, kinds)), failures: failures.map(String) }
    await this.#updateConditions(name, remaining)
    // An object with finalizers enqueues the namespace again when it is deleted.
    const [failure] = failures
    if (failure !== undefined) throw failure
    if (remaining.resources.size === 0) await this.#removeFinalizer(name)
  }

  async #deleteAll(namespace: string, kinds: readonly Kind[]): Promise<unknown[]> {
    const done: Promise<void>[] = []
    for (const kind of kinds) {
      const table = this.#store.table(kind.storageName)
      await yieldEvery(table.inNamespace(namespace), entry => {
        if (entry.deleting) return
        const deleted = deleteEntry(this.#store, kind, table, entry, { propagation: 'Background', dryRun: false })
        deleted.catch(() => {})
        done.push(deleted)
      })
    }
    const settled = await Promise.allSettled(done)
    return settled.filter(result => result.status === 'rejected').map(({ reason }): unknown => reason)
  }

  #hasAny(namespace: string, kinds: readonly Kind[]): boolean {
    return kinds.some(kind => this.#store.table(kind.storageName).inNamespace(namespace).length > 0)
  }

  async #countRemaining(namespace: string, kinds: readonly Kind[]): Promise<Pick<RemainingContent, 'resources' | 'finalizers'>> {
    const resources = new Map<string, number>()
    const finalizers = new Map<string, number>()
    for (const { group, plural, storageName } of kinds) {
      const entries = this.#store.table(storageName).inNamespace(namespace)
      if (entries.length > 0) resources.set(`${plural}.${group}`, entries.length)
      await yieldEvery(entries, entry => {
        for (const waited of parseEntry(entry).metadata.finalizers ?? []) finalizers.set(waited, (finalizers.get(waited) ?? 0) + 1)
      })
    }
    return { resources, finalizers }
  }

  /** Reports the remaining content in the conditions of the namespace. */
  async #updateConditions(name: string, remaining: RemainingContent): Promise<void> {
    const { nowMs } = this.#store
    await mutate(this.#store, this.#table, name, head => {
      const before = head && parseEntry(head)
      if (!before?.metadata.deletionTimestamp) return { result: undefined }
      const status = (before.status ?? {}) as { conditions?: Condition[] }
      const conditions = namespaceConditions(status.conditions, remaining, nowMs)
      if (equalJson(conditions, status.conditions)) return { result: undefined }
      const after: KubeObject = { ...before, metadata: { ...before.metadata }, status: { ...status, conditions } }
      const schema = this.#registry.find('', 'v1', 'namespaces')?.schema
      const managedFields = trackUpdate({ before, after, manager, schema, apiVersion: 'v1', subresource: 'status', nowMs })
      if (managedFields.length > 0) after.metadata.managedFields = managedFields
      return { put: after }
    })
  }

  async #removeFinalizer(name: string): Promise<void> {
    await mutate(this.#store, this.#table, name, head => {
      const namespace = head && parseEntry(head)
      if (!namespace?.metadata.deletionTimestamp) return { result: undefined }
      const spec = (namespace.spec ?? {}) as { finalizers?: string[] }
      if (!spec.finalizers?.includes(finalizer)) return { result: undefined }
      const next: KubeObject = { ...namespace, spec: { ...spec, finalizers: spec.finalizers.filter(other => other !== finalizer) } }
      return isDeletionComplete(next) ? { remove: namespace } : { put: next }
    })
  }
}
