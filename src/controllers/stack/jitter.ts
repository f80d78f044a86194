/** A constant between 0 and 1 derived from a Stack's uid, which spreads the drift checks of a fleet. */
export function jitterOf(uid: string): number {
  // FNV-1a, 32 bits: the uids of one server may differ in a few places only.
  let hash = 0x811c9dc5
  for (let i = 0; i < uid.length; i++) hash = Math.imul(hash ^ uid.charCodeAt(i), 0x01000193)
  return (hash >>> 0) / 0x1_0000_0000
}

/** The drift interval of one Stack, ±10% by its own constant `jitter` (0 to 1), so that a fleet does not check all Stacks at the same time. */
export function jitteredIntervalMs(intervalMs: number, jitter: number): number {
  return Math.round(intervalMs * (0.9 + 0.2 * jitter))
}
