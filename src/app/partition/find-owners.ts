import { kindClassOf, systemNamespaces } from '../../gateway/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject, StatusError } from '../../kubernetes/object/index.ts'
import type { OwnerElsewhere, OwnerLookUp } from '../../kubernetes/server/index.ts'

/** A home that is paused accepts requests and does not answer. */
const timeoutMs = 5_000

/** At home an owner is elsewhere only if each object of its kind is in a partition of its own. */
export const ownersOfHome: OwnerLookUp = {
  elsewhere: owner => (isOwned(owner) ? 'unknown' : undefined),
  exists: async () => true,
}

/** Finds the owners of another partition's objects: at home, where even what it has a copy of has another UID. */
export const ownersAtHome = (home: Client): OwnerLookUp => ({
  // Which partition has an object of these kinds follows from its claim, and a claim may be missing: home was restored from a backup, or the object was
  // created past the gateway.
  elsewhere: owner => (isOwned(owner) ? 'unknown' : 'lookUp'),
  exists: async owner => await existsAtHome(home, owner),
})

/** Namespaces of the system are in each partition, and clients see that of home. */
const isOwned = ({ table, name }: Pick<OwnerElsewhere, 'table' | 'name'>): boolean =>
  kindClassOf(table) === 'owned' && !(table === 'namespaces' && systemNamespaces.includes(name))

async function existsAtHome(home: Client, { apiVersion, plural, name, uid }: OwnerElsewhere): Promise<boolean> {
  const prefix = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  try {
    const path = `${prefix}/${plural}/${encodeURIComponent(name)}`
    const response = await home.request({ method: 'GET', path, signal: AbortSignal.timeout(timeoutMs) })
    return ((await response.json()) as KubeObject).metadata.uid === uid
  } catch (error) {
    // Without its name the kind is not found, or the 404 is that of a proxy.
    if (error instanceof StatusError && isReason(error, 'NotFound') && error.details?.name === name) return false
    throw error
  }
}
