import { setCondition } from '../../object/index.ts'
import { yieldEvery } from '../fairness/index.ts'
import { type Crd, crdFinalizer, type Registry } from '../registry/index.ts'
import { deleteEntry, isDeletionComplete, mutate } from '../rest/index.ts'
import { parseEntry, type Store, type StoredEvent, type Table } from '../storage/index.ts'
import type { TaskQueue } from './task-queue.ts'

/** Finalizes CustomResourceDefinitions: deletes their objects, then the definition. */
export class CrdController {
  readonly #store: Store
  readonly #registry: Registry
  readonly #queue: TaskQueue
  readonly #table: Table
  /** The definition of each resource that is being deleted, by storage name. */
  readonly #terminating = new Map<string, string>()

  constructor(store: Store, registry: Registry, queue: TaskQueue) {
    this.#store = store
    this.#registry = registry
    this.#queue = queue
    this.#table = store.table('customresourcedefinitions.apiextensions.k8s.io')
  }

  start(): void {
    for (const entry of this.#table.values()) if (entry.deleting) this.#finalize(entry.name)
  }

  observe(table: Table, events: readonly StoredEvent[]): void {
    for (const { type, entry } of events) {
      if (table === this.#table) {
        if (type === 'DELETED') this.#terminating.delete(entry.name)
        else if (entry.deleting) this.#finalize(entry.name)
      } else if (type === 'DELETED' && this.#terminating.has(table.name)) this.#finalize(table.name)
    }
  }

  // The name of a definition is the name of the table of its objects.
  #finalize(name: string): void {
    this.#terminating.set(name, name)
    this.#queue.add(`definition ${name}`, () => this.#deleteObjectsThenCrd(name))
  }

  async #deleteObjectsThenCrd(name: string): Promise<void> {
    if (!this.#table.get(name)?.deleting) return
    await mutate(this.#store, this.#table, name, head => {
      const crd = head && (parseEntry(head) as Crd)
      if (!crd?.status || crd.status.conditions?.some(({ reason }) => reason === 'InstanceDeletionInProgress')) return { result: undefined }
      const terminating = {
        type: 'Terminating',
        status: 'True' as const,
        reason: 'InstanceDeletionInProgress',
        message: 'CustomResource deletion is in progress',
      }
      return { put: { ...crd, status: { ...crd.status, conditions: setCondition(crd.status.conditions, terminating, this.#store.nowMs) } } }
    })
    // A definition with the name of a built-in kind must not delete the objects of that kind.
    if (!this.#registry.isBuiltIn(name) && !(await this.#deleteObjects(name))) return
    await mutate(this.#store, this.#table, name, head => {
      const crd = head && (parseEntry(head) as Crd)
      const finalizers = crd?.metadata.finalizers
      if (!crd?.metadata.deletionTimestamp || !finalizers?.includes(crdFinalizer)) return { result: undefined }
      const kept = finalizers.filter(finalizer => finalizer !== crdFinalizer)
      const next = { ...crd, metadata: { ...crd.metadata, finalizers: kept.length > 0 ? kept : undefined } }
      return isDeletionComplete(next) ? { remove: next } : { put: next }
    })
  }

  async #deleteObjects(name: string): Promise<boolean> {
    const kind = [...this.#registry.storedKinds()].find(candidate => candidate.storageName === name)
    const objects = this.#store.table(name)
    if (kind) {
      const done: Promise<void>[] = []
      await yieldEvery(objects.snapshot(), entry => {
        if (entry.deleting) return
        const deleted = deleteEntry(this.#store, kind, objects, entry, { propagation: undefined, dryRun: false })
        deleted.catch(() => {})
        done.push(deleted)
      })
      await Promise.all(done)
    }
    return objects.size === 0
  }
}
