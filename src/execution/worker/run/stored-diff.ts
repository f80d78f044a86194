import { maxDiffBytes, type Run, type StoredDiff } from '../../../api/index.ts'
import { isJsonObject, type Json } from '../../../kubernetes/object/index.ts'
import type { PlanDiff, PlanResult } from '../../engine/index.ts'

/** What the store keeps of a plan, with every secret masked (invariant 9) and at most `maxBytes` of each part (invariant 10). */
export function storedDiff(
  run: Run,
  { digest, add, change, destroy }: PlanResult,
  diff: PlanDiff,
  mask: (text: string) => string,
  maxBytes = maxDiffBytes,
): StoredDiff {
  // Masked as a whole, because a secret may have several lines.
  const { text, missing } = firstLines(mask(diff.text), maxBytes)
  const document = maskJson(diff.document, mask)
  const isSmall = Buffer.byteLength(JSON.stringify(document)) <= maxBytes
  return {
    ...{ runName: run.metadata.name, digest, engine: run.spec.stack.engine, add, change, destroy, text },
    ...(missing && { missing }),
    ...(isSmall && { document }),
  }
}

/** The lines at the beginning of `text` that have at most `maxBytes`, and how much is missing. */
function firstLines(text: string, maxBytes: number): Pick<StoredDiff, 'text' | 'missing'> {
  const bytes = Buffer.from(text)
  if (bytes.byteLength <= maxBytes) return { text }
  const end = bytes.lastIndexOf('\n', maxBytes)
  const kept = bytes.subarray(0, Math.max(0, end))
  return {
    text: kept.toString(),
    missing: { lines: countLines(bytes.subarray(kept.byteLength + (end < 0 ? 0 : 1))), bytes: bytes.byteLength - kept.byteLength },
  }
}

function countLines(bytes: Buffer): number {
  let lines = 1
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) lines++
  return lines
}

/** A number or boolean that is a secret becomes a string. */
function maskJson(value: Json, mask: (text: string) => string): Json {
  if (typeof value === 'string') return mask(value)
  if (typeof value === 'number' || typeof value === 'boolean') {
    const text = String(value)
    const masked = mask(text)
    return masked === text ? value : masked
  }
  if (Array.isArray(value)) return value.map(each => maskJson(each, mask))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [mask(key), maskJson(each as Json, mask)]))
}
