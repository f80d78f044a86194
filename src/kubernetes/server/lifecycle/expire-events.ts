import { parseEntry, readRevision, type Store } from '../storage/index.ts'

/** How long an Event is kept after its last write, as in Kubernetes. */
const eventTtlMs = 60 * 60_000

/** Removes Events older than {@link eventTtlMs} (invariant 10). A revision says when it was written. */
export async function expireEvents(store: Store): Promise<number> {
  const table = store.table('events')
  const oldestMs = store.nowMs - eventTtlMs
  const done: Promise<unknown>[] = []
  for (const entry of table.values()) {
    // One that is being written just now is not old.
    if (readRevision(entry.revision).atMs >= oldestMs || store.head(table, entry.key) !== entry) continue
    done.push(store.remove(table, entry, parseEntry(entry)))
  }
  await Promise.all(done)
  return done.length
}
