import { controllerLeaseName, systemNamespace } from '../../api/index.ts'
import { type Client, leaseResource } from '../../kubernetes/client/index.ts'

export type Leader = { readonly identity: string; readonly renewedAtMs: number; readonly leaseDurationMs: number }

/** The holder of the controllers' Lease, also of one that has expired; undefined if it was released or never held. */
export async function readLeader(client: Client): Promise<Leader | undefined> {
  const lease = await client.resource(leaseResource).getOrUndefined(controllerLeaseName, { namespace: systemNamespace })
  const { holderIdentity, renewTime, leaseDurationSeconds } = lease?.spec ?? {}
  if (!holderIdentity || !renewTime) return undefined
  return { identity: holderIdentity, renewedAtMs: Date.parse(renewTime), leaseDurationMs: (leaseDurationSeconds ?? 0) * 1_000 }
}
