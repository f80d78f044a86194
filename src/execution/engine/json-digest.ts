import { createHash } from 'node:crypto'
import { stableJson } from '../../kubernetes/object/index.ts'

/** `sha256:<hex>` of the JSON of `value` with sorted keys, so that equal values have equal digests. */
export function jsonDigest(value: unknown): string {
  return `sha256:${createHash('sha256').update(stableJson(value)).digest('hex')}`
}
