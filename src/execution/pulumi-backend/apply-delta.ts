import { isJsonObject } from '../../kubernetes/object/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'

/** One edit of `gotextdiff`: the bytes from `start` to `end` of the old text are replaced. Edits are sorted and do not overlap. */
type Edit = { readonly start: number; readonly end: number; readonly text: string }

/**
 * Applies a checkpoint delta (`apitype.PatchUpdateCheckpointDeltaRequest`) to the previous checkpoint.
 * @param delta `[{"Span":{"start":{"offset":N},"end":{"offset":N}},"NewText":"…"}]`, offsets in bytes.
 * @param checksum SHA-256 of the result in hexadecimal.
 * @returns undefined if the result differs from the checksum, or the edits do not fit: the CLI then sends the whole checkpoint.
 */
export function applyDelta(base: Uint8Array, delta: unknown, checksum: string, maxBytes: number): Uint8Array | undefined {
  const edits = parseEdits(delta)
  if (!edits) return undefined
  const parts: Uint8Array[] = []
  let position = 0
  let size = 0
  const add = (part: Uint8Array) => {
    size += part.byteLength
    parts.push(part)
  }
  for (const { start, end, text } of edits) {
    if (start < position || end < start || end > base.byteLength) return undefined
    add(base.subarray(position, start))
    add(Buffer.from(text))
    position = end
    if (size > maxBytes) return undefined
  }
  add(base.subarray(position))
  if (size > maxBytes) return undefined
  const result = Buffer.concat(parts, size)
  return sha256(result) === checksum.toLowerCase() ? result : undefined
}

function parseEdits(delta: unknown): Edit[] | undefined {
  if (!Array.isArray(delta)) return undefined
  const edits: Edit[] = []
  for (const each of delta) {
    if (!isJsonObject(each)) return undefined
    // The fields have no JSON names of their own in gotextdiff, so Go prints them capitalized; those of the span have.
    const span = each.Span ?? each.span
    const text = each.NewText ?? each.newText
    if (!isJsonObject(span) || typeof text !== 'string') return undefined
    const start = toOffset(span.start)
    const end = toOffset(span.end)
    if (start === undefined || end === undefined) return undefined
    edits.push({ start, end, text })
  }
  return edits
}

function toOffset(point: unknown): number | undefined {
  if (!isJsonObject(point)) return undefined
  // Zero is omitted.
  const offset = point.offset ?? 0
  return Number.isSafeInteger(offset) && (offset as number) >= 0 ? (offset as number) : undefined
}
