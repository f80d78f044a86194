import { maxSlots } from './bucket.ts'

/** The label of the Leases of a ring, with the ring's name as its value. */
export const ringLabel = 'sharding.oarlock.dev/ring'
/** The annotation of the ring's Lease that has the ring. */
export const ringAnnotation = 'sharding.oarlock.dev/ring'

/** Name of the Lease of the ring. */
export const ringLeaseName = (name: string): string => `${name}-ring`

/** Name of the Lease of a slot. */
export const slotLeaseName = (name: string, slot: number): string => `${name}-${slot}`

/** The slot of a Lease by its name; undefined for the ring's Lease and for names that no slot has, such as `r-00`. */
export function slotOfLease(name: string, leaseName: string): number | undefined {
  if (!leaseName.startsWith(`${name}-`)) return undefined
  const text = leaseName.slice(name.length + 1)
  const slot = /^(0|[1-9]\d?)$/.test(text) ? Number(text) : undefined
  return slot !== undefined && slot < maxSlots ? slot : undefined
}
