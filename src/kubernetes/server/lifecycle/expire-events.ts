import { readRevision } from '../../util/index.ts'
import { parseEntry, type Store } from '../storage/index.ts'

/** How long an Event is kept after its last write, as in kube-apiserver. */
const eventTtlMs = 60 * 60_000

/** Deletes Events older than {@link eventTtlMs} (invariant 10). A revision contains the time of its write. */
export async function expireEvents(store: Store): Promise<number> {
  const table = store.table('events')
  const oldestMs = store.nowMs - eventTtlMs
  const done: Promise<unknown>[] = []
  for (const entry of table.values()) {
    // A pending write makes an Event new.
    if (readRevision(entry.revision).atMs >= oldestMs || store.head(table, entry.key) !== entry) continue
    done.push(store.remove(table, entry, parseEntry(entry)))
  }
  await Promise.all(done)
  return done.length
}
