/**
 * The merge patch that renews a Lease. The UID binds it to this Lease, not to a later one of the same name.
 * A file of its own, because the heartbeat's thread loads it.
 */
export function leaseRenewal(leaseUid: string, nowMs: number): object {
  return { metadata: { uid: leaseUid }, spec: { renewTime: new Date(nowMs).toISOString().replace('Z', '000Z') } }
}
