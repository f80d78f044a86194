/** The merge patch that renews a Lease: of this very Lease, not of a later one of its name. Alone here, as the heartbeat's thread loads it. */
export function leaseRenewal(leaseUid: string, nowMs: number): object {
  return { metadata: { uid: leaseUid }, spec: { renewTime: new Date(nowMs).toISOString().replace('Z', '000Z') } }
}
