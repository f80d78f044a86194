import { crc32 } from 'node:zlib'

/**
 * CRC-32 of a row's value as it is stored, encrypted or not: that of a secret text would reveal something about it. Seeded with the name of its resource. SQLite keeps no checksums of its own, and a flipped bit inside a
 * string is still JSON. It detects corruption by disks and cables; it does not protect against deliberate changes.
 */
export function rowChecksum(seed: number, value: string | Uint8Array): number {
  return crc32(value, seed)
}

/** The seed of {@link rowChecksum} for rows of `resource`. */
export function checksumSeed(resource: string): number {
  return crc32(resource)
}
