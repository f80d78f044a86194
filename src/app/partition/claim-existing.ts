import { randomUUID } from 'node:crypto'
import { claimName, nameClaimResource, ownedKinds, renewedAnnotation, systemNamespaces, tenantLabel } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { isReason } from '../../kubernetes/object/index.ts'

/**
 * Claims the names of the owned objects of a partition, which it may have had before it became one, or whose claims home has lost. A claim up to
 * `keepClaimsUpTo` is renewed: its object is here, so that it is removed with that.
 * A name that another partition has claimed is logged: requests for it reach the other one.
 */
export async function claimExisting({
  local,
  home,
  partition,
  keepClaimsUpTo,
  log,
  signal,
}: {
  readonly local: Client
  readonly home: Client
  readonly partition: string
  readonly keepClaimsUpTo: number
  readonly log: Log
  readonly signal: AbortSignal
}): Promise<void> {
  const claims = home.resource(nameClaimResource)
  const { items: known } = await claims.listAll({ signal })
  const byName = new Map(known.map(claim => [claim.metadata.name, claim]))
  let claimed = 0
  for (const [resource, kind] of ownedKinds) {
    const { items } = await local.resource(kind).listAll({ signal }).catch(withoutKind)
    for (const { metadata } of items) {
      const { name } = metadata
      if (resource === 'namespaces' && systemNamespaces.includes(name)) continue
      const key = claimName(resource, name)
      const claim = byName.get(key)
      try {
        if (!claim) {
          const tenant = resource === 'namespaces' ? metadata.labels?.[tenantLabel] : undefined
          const claimFor = async (tenant?: string) =>
            await claims.create({ metadata: { name: key }, spec: { resource, name, partition, ...(tenant && { tenant }) } }, { signal })
          await claimFor(tenant).catch(error => {
            // Its Tenant was moved by an earlier version: the object is here nevertheless.
            if (tenant === undefined || !isReason(error, 'Forbidden')) throw error
            return claimFor()
          })
          claimed++
        } else if (claim.spec.partition !== partition) {
          log.warn({ resource, name, partition, claimedBy: claim.spec.partition }, 'the name of an object is claimed by another partition')
        } else if (Number(claim.metadata.resourceVersion) <= keepClaimsUpTo) {
          const renewed = { uid: claim.metadata.uid, annotations: { [renewedAnnotation]: randomUUID() } }
          await claims.patch(key, { metadata: renewed }, { type: 'merge', signal })
        }
      } catch (error) {
        // Claimed or removed meanwhile.
        if (!isReason(error, 'AlreadyExists', 'NotFound', 'Conflict')) throw error
      }
    }
  }
  if (claimed > 0) log.info({ partition, claimed }, 'names of existing objects were claimed')
}

/** The definition of Workers is not copied yet: there are none. */
function withoutKind(error: unknown): { readonly items: readonly never[] } {
  if (isReason(error, 'NotFound')) return { items: [] }
  throw error
}
