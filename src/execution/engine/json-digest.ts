import { stableJson } from '../../kubernetes/object/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'

/** `sha256:<hex>` of the JSON of `value` with sorted keys, so that equal values have equal digests. */
export function jsonDigest(value: unknown): string {
  return `sha256:${sha256(stableJson(value))}`
}
