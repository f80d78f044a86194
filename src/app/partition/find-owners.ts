import { claimName, kindClassOf, nameClaimResource, systemNamespaces } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject, StatusError } from '../../kubernetes/object/index.ts'
import type { OwnerElsewhere, OwnerLookUp } from '../../kubernetes/server/index.ts'

/** A home that is paused accepts requests and does not answer. */
const timeoutMs = 5_000

export type OwnerLookUpOptions = {
  readonly partition: string
  readonly isHome: boolean
  /** @throws {Error} while it is not open. */
  home(): Client
}

/** Finds the owners of a partition's objects in other partitions, by what home knows. */
export function findOwners({ partition, isHome, home }: OwnerLookUpOptions): OwnerLookUp {
  return {
    // Home has all objects of the other kinds. Elsewhere even a copy of one has another UID than the object that clients see.
    mayBeElsewhere: owner => !isHome || isClaimed(owner),
    async exists(owner) {
      if (!isClaimed(owner)) return await existsAtHome(home(), owner)
      const { table, name } = owner
      const claim = await home()
        .resource(nameClaimResource)
        .getOrUndefined(claimName(table, name), { signal: AbortSignal.timeout(timeoutMs) })
      // Of the partition's own objects what is stored there decides; the UID of one in another partition is not known.
      return claim !== undefined && claim.spec.partition !== partition
    },
  }
}

/** Namespaces of the system are in each partition, and clients see that of home. */
const isClaimed = ({ table, name }: Pick<OwnerElsewhere, 'table' | 'name'>): boolean =>
  kindClassOf(table) === 'owned' && !(table === 'namespaces' && systemNamespaces.includes(name))

async function existsAtHome(home: Client, { apiVersion, plural, name, uid }: OwnerElsewhere): Promise<boolean> {
  const prefix = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  try {
    const path = `${prefix}/${plural}/${encodeURIComponent(name)}`
    const response = await home.request({ method: 'GET', path, signal: AbortSignal.timeout(timeoutMs) })
    return ((await response.json()) as KubeObject).metadata.uid === uid
  } catch (error) {
    // Without its name the kind is not found: home may not serve it yet.
    if (error instanceof StatusError && isReason(error, 'NotFound') && error.details?.name === name) return false
    throw error
  }
}
