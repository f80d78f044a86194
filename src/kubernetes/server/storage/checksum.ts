import { crc32 } from 'node:zlib'

/**
 * CRC-32 of a row's text, begun with the name of its resource: SQLite keeps no checksums of its own, and a flipped bit inside
 * a string is still JSON. It finds damage by disks and cables; it is no protection against somebody who wants to change data.
 */
export function rowChecksum(seed: number, text: string): number {
  return crc32(text, seed)
}

/** What {@link rowChecksum} begins with for rows of `resource`. */
export function checksumSeed(resource: string): number {
  return crc32(resource)
}
