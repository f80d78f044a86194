import { bucketCount, maxSlots, noSlot } from './bucket.ts'

/** The holder of a bucket after the ring was lost: any member may still work on it, until all have acknowledged the new ring. */
export const unknownSlot = -2

/** The member that has a slot. */
export type RingMember = {
  /** The holder of the slot's Lease, unique for each time that a process claims a slot. */
  readonly session: string
  /** The UID of that Lease. */
  readonly uid: string
  /** The version at which its orders last changed: acknowledgements of earlier versions do not count. */
  readonly since: number
}

/**
 * Who may work on which bucket. A member works on a bucket only while it is its holder, it is not being released, and its own
 * Lease is valid by its own clock. `targets` are the holders to be: a bucket passes from its holder to its target in three steps (the
 * target fills its caches, the holder stops, the target becomes the holder), each confirmed by the member concerned.
 */
export type Ring = {
  /** Rises with every change. */
  readonly version: number
  readonly members: ReadonlyMap<number, RingMember>
  /** To whom a bucket belongs while all slots are claimed. */
  readonly homes: Int16Array
  readonly targets: Int16Array
  /** A slot, {@link noSlot} or {@link unknownSlot}. */
  readonly holders: Int16Array
  /** 1 for buckets whose holder must stop. */
  readonly releasing: Uint8Array
}

/** A ring in which any live member may still work on anything. */
export function unknownRing(version: number): Ring {
  return {
    version,
    members: new Map(),
    homes: new Int16Array(bucketCount).fill(noSlot),
    targets: new Int16Array(bucketCount).fill(noSlot),
    holders: new Int16Array(bucketCount).fill(unknownSlot),
    releasing: new Uint8Array(bucketCount),
  }
}

const digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
/** `leaseTransitions` stores the version too, and is an int32: at one change per second, 68 years, after which versions start again at 1. */
const maxVersion = 2 ** 31 - 2
/** A longer holder of a Lease is no session: names of processes are at most 253 characters, and their suffixes 20. */
export const maxSessionLength = 300
const specials: Readonly<Record<string, number>> = { '-': noSlot, '?': unknownSlot }

/** The ring as text, for an annotation: about 1 KB plus 130 bytes per member, and 3 KB more while buckets move. */
export function formatRing(ring: Ring): string {
  const holders = formatSlots(ring.holders)
  const targets = formatSlots(ring.targets)
  const homes = formatSlots(ring.homes)
  return JSON.stringify({
    version: ring.version,
    members: Object.fromEntries(ring.members),
    holders,
    ...(targets !== holders && { targets }),
    ...(homes !== targets && { homes }),
    ...(ring.releasing.includes(1) && { releasing: Array.from(ring.releasing, flag => (flag ? 'r' : '.')).join('') }),
  })
}

/** Whether a number can be the version of a ring. */
export function isRingVersion(version: unknown): version is number {
  return Number.isSafeInteger(version) && (version as number) >= 0 && (version as number) <= maxVersion
}

/** Returns undefined for what is not a ring. */
export function parseRing(text: string | undefined): Ring | undefined {
  if (text === undefined) return undefined
  try {
    const { version, members, holders, targets = holders, homes = targets, releasing } = JSON.parse(text) as Record<string, unknown>
    if (!isRingVersion(version) || typeof members !== 'object' || members === null) return undefined
    const parsed = [homes, targets, holders].map(parseSlots)
    if (parsed.includes(undefined)) return undefined
    const entries = Object.entries(members).map(([slot, member]) => [Number(slot), readMember(member)] as const)
    if (entries.some(([slot, member]) => !(Number.isInteger(slot) && slot >= 0 && slot < maxSlots) || member === undefined))
      return undefined
    const flags = Uint8Array.from({ length: bucketCount }, (_, bucket) => (String(releasing ?? '')[bucket] === 'r' ? 1 : 0))
    const [home, target, holder] = parsed as [Int16Array, Int16Array, Int16Array]
    return {
      version,
      members: new Map(entries as [number, RingMember][]),
      homes: home,
      targets: target,
      holders: holder,
      releasing: flags,
    }
  } catch {
    return undefined
  }
}

function readMember(value: unknown): RingMember | undefined {
  const { session, uid, since } = (value ?? {}) as Record<string, unknown>
  const isText = [session, uid].every(text => typeof text === 'string' && text.length <= maxSessionLength)
  return isText && isRingVersion(since) ? { session: session as string, uid: uid as string, since } : undefined
}

function formatSlots(slots: Int16Array): string {
  return Array.from(slots, slot => (slot === noSlot ? '-' : slot === unknownSlot ? '?' : digits[slot])).join('')
}

function parseSlots(text: unknown): Int16Array | undefined {
  if (typeof text !== 'string' || text.length !== bucketCount) return undefined
  const slots = new Int16Array(bucketCount)
  for (let bucket = 0; bucket < bucketCount; bucket++) {
    const slot = specials[text[bucket]!] ?? digits.indexOf(text[bucket]!)
    if (slot === -1 && text[bucket] !== '-') return undefined
    slots[bucket] = slot
  }
  return slots
}
