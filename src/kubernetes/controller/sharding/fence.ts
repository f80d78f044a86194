/**
 * The fencing token of a version of the ring: the resourceVersion of its Lease, which rises even if the Lease is deleted and created
 * again. On a server whose versions are no integers it is the ring's version.
 */
export function fenceOf(resourceVersion: string, version: number): number {
  const fence = Number(resourceVersion)
  return Number.isSafeInteger(fence) && fence > 0 ? fence : version
}
