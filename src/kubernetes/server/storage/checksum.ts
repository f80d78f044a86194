import { crc32 } from 'node:zlib'

/**
 * CRC-32 of a row's text, seeded with the name of its resource. SQLite keeps no checksums of its own, and a flipped bit inside a
 * string is still JSON. It detects corruption by disks and cables; it does not protect against deliberate changes.
 */
export function rowChecksum(seed: number, text: string): number {
  return crc32(text, seed)
}

/** The seed of {@link rowChecksum} for rows of `resource`. */
export function checksumSeed(resource: string): number {
  return crc32(resource)
}
