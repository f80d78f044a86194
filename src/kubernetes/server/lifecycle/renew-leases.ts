import { type KubeObject, rfc3339Micro } from '../../object/index.ts'
import { parseEntry, type Store } from '../storage/index.ts'

const leasesTable = 'leases.coordination.k8s.io'
/** Bounds the bytes that wait for the disk. */
const batchSize = 1_000

/**
 * After a crash, acknowledged renewals may be lost (`storage/deferred-writes.ts`), so a stored Lease may be the version that a candidate
 * saw long ago: to it, the holder would seem expired, and its takeover from that version would pass as current while the holder still
 * counts on its lost renewal (invariant 2). So each held Lease is renewed once on behalf of its holder before anyone can read it: every
 * observer sees a change and waits a full duration, and an update from any version before the crash is a Conflict. etcd extends its
 * leases in the same way when its leader changes.
 *
 * Resolves when the Leases are durable.
 */
export async function renewLeasesAfterCrash(store: Store): Promise<void> {
  const leases = store.table(leasesTable)
  if (!store.wasInterrupted(leases)) return
  let renewals: Promise<unknown>[] = []
  for (const entry of [...store.heads(leases)]) {
    const lease = parseEntry(entry) as KubeObject & { spec?: { holderIdentity?: string; renewTime?: string } }
    if (!lease.spec?.holderIdentity) continue
    // Another time than the stored one, even if the clock was set back to it: observers compare the times, not the versions.
    const now = rfc3339Micro(store.nowMs)
    const renewTime = now === lease.spec.renewTime ? rfc3339Micro(store.nowMs + 1) : now
    renewals.push(store.put(leases, entry, { ...lease, spec: { ...lease.spec, renewTime } }))
    if (renewals.length < batchSize) continue
    await Promise.all(renewals)
    renewals = []
  }
  await Promise.all(renewals)
}
