import { type KubeObject, StatusError } from '../../object/index.ts'
import type { Kind } from '../registry/index.ts'
import { parseEntry, type Store, type StoredEntry, type Table } from '../storage/index.ts'
import { wireText } from '../wire/index.ts'
import { checkStored } from './check-size.ts'

/** The outcome of a write, decided from the newest version of its object. */
export type WriteDecision =
  /** Store `object` (in its stored form); `isDeferred`: acknowledge it before it is on disk. */
  | { readonly put: KubeObject; readonly isDeferred?: boolean }
  /** Delete the object: watchers see `remove` as its last state; the writer gets `result` instead, if set, which is never stored. */
  | { readonly remove: KubeObject; readonly result?: KubeObject }
  /** Store nothing: a dry run with this result, or a no-op (undefined). */
  | { readonly result: KubeObject | undefined }

export type WriteResult = { entry: StoredEntry | undefined; object: KubeObject | undefined; isRemoved: boolean; isCreated: boolean }

/**
 * Runs `decide` against the newest version of a key and makes its decision durable.
 *
 * `decide` sees versions that are not yet on disk, so writes to one key do not wait for each other. A result without a write of its
 * own (an error, a no-op) waits until that version is durable, and is decided again if the version was lost: a client never sees the
 * effect of a write that a crash could undo (invariant 5), other than a renewal (`Strategy.isRenewal`).
 *
 * @param createBefore a new object must not get a higher revision. @throws {StatusError} Conflict (412) if it would.
 */
export async function mutate(
  store: Store,
  table: Table,
  key: string,
  decide: (head: StoredEntry | undefined) => WriteDecision,
  createBefore?: number,
): Promise<WriteResult> {
  for (;;) {
    const head = store.head(table, key)
    const settling = store.settled(table, key)
    let decision: WriteDecision
    try {
      decision = decide(head)
    } catch (error) {
      if (!settling || !(error instanceof StatusError)) throw error
      await settling
      if (store.head(table, key) !== head) continue
      throw error
    }
    if ('put' in decision) {
      const { put, isDeferred } = decision
      if (head) checkStored(put, head.text.length)
      // The revision is assigned before anything else happens.
      else if (createBefore !== undefined && store.upcomingRevision > createBefore) throw createdTooLate(table, key)
      const entry = await (isDeferred && head ? store.putDeferred(table, head, put) : store.put(table, head, put))
      return { entry, object: undefined, isRemoved: false, isCreated: head === undefined }
    }
    if ('remove' in decision) {
      const entry = await store.remove(table, head!, decision.remove)
      const { result } = decision
      return { entry: result ? undefined : entry, object: result, isRemoved: true, isCreated: false }
    }
    if (settling) {
      await settling
      if (store.head(table, key) !== head) continue
    }
    return { entry: decision.result ? undefined : head, object: decision.result, isRemoved: false, isCreated: false }
  }
}

const createdTooLate = ({ name }: Table, key: string) =>
  new StatusError('Conflict', `${name} ${JSON.stringify(key)} is not created, because the time in which its name may be used has passed`, {
    code: 412,
  })

/** An entry as an object at the version of `kind`. The caller may change it. */
export function readEntry(kind: Kind, entry: StoredEntry): KubeObject {
  return kind.fromStorage ? (JSON.parse(wireText(kind, entry)) as KubeObject) : parseEntry(entry)
}

/** An object of `kind` as it is stored. */
export function storedForm(kind: Kind, object: KubeObject): KubeObject {
  const { apiVersion, kind: name, metadata, ...rest } = kind.toStorage ? kind.toStorage(object) : object
  return { apiVersion, kind: name, metadata, ...rest }
}
