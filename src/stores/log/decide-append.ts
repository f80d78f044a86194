import { formatBytes } from '../../kubernetes/util/index.ts'

/** Limits of one Run's log (invariant 10). */
export type RunLogLimits = {
  /** Maximum stored bytes; further bytes are counted and dropped, and a mark is added. */
  readonly bytesPerRun: number
  /** Maximum bytes of one line without its newline; the rest of the line is dropped, and a mark is added. */
  readonly lineBytes: number
}

/** The state of a log. `received` counts received bytes, `size` stored bytes; truncation and marks make them differ. */
export type LogState = {
  readonly received: number
  readonly size: number
  /** Stored bytes of the last, incomplete line. */
  readonly lineBytes: number
  /** Dropped bytes of that line. */
  readonly cutBytes: number
  /** Bytes dropped since the limit of the log was reached; undefined before. */
  readonly droppedBytes?: number
  readonly ended: boolean
}

export const emptyLog: LogState = { received: 0, size: 0, lineBytes: 0, cutBytes: 0, ended: false }

export type AppendDecision =
  | { readonly kind: 'append'; readonly state: LogState; readonly output: Buffer }
  /** All bytes were received before: the response to an earlier append was lost. */
  | { readonly kind: 'duplicate' }
  /** Bytes between `expected` and the given offset are missing. */
  | { readonly kind: 'gap'; readonly expected: number }
  | { readonly kind: 'ended' }

const newline = 10

/**
 * Decides what is stored of `bytes`, whose `offset` counts all bytes that the sender has ever sent. Bytes received before are skipped, so a
 * repeated append has no effect; a gap is rejected. Invariant 10: `size` stays below `bytesPerRun` plus the marks.
 */
export function decideAppend(state: LogState, offset: number, bytes: Buffer, limits: RunLogLimits): AppendDecision {
  if (offset > state.received) return { kind: 'gap', expected: state.received }
  const fresh = bytes.subarray(Math.min(bytes.byteLength, state.received - offset))
  if (fresh.byteLength === 0) return { kind: 'duplicate' }
  if (state.ended) return { kind: 'ended' }
  const received = state.received + fresh.byteLength
  if (state.droppedBytes !== undefined) {
    return { kind: 'append', state: { ...state, received, droppedBytes: state.droppedBytes + fresh.byteLength }, output: Buffer.alloc(0) }
  }
  const { output, lineBytes, cutBytes } = cutLines(state, fresh, limits.lineBytes)
  const freeBytes = limits.bytesPerRun - state.size
  if (output.byteLength <= freeBytes) {
    return { kind: 'append', output, state: { ...state, received, size: state.size + output.byteLength, lineBytes, cutBytes } }
  }
  const kept = keepWholeLines(output, Math.max(0, freeBytes), state.lineBytes > 0)
  const mark = Buffer.from(`[oarlock] log truncated: limit of ${formatBytes(limits.bytesPerRun)} reached, further output is dropped\n`)
  const stored = Buffer.concat([kept, mark])
  const droppedBytes = output.byteLength - kept.byteLength
  return {
    kind: 'append',
    output: stored,
    state: { ...state, received, size: state.size + stored.byteLength, lineBytes: 0, cutBytes: 0, droppedBytes },
  }
}

/** Ends a log: terminates its last line and adds how much was dropped. `unsentBytes`: what the sender dropped because the log was full. */
export function decideEnd(state: LogState, limits: RunLogLimits, unsentBytes = 0): { state: LogState; output: Buffer } {
  if (state.ended) return { state, output: Buffer.alloc(0) }
  const cut = state.cutBytes > 0 ? cutMark(limits.lineBytes, state.cutBytes) : ''
  const line = state.lineBytes > 0 ? '\n' : ''
  const mark =
    state.droppedBytes === undefined
      ? ''
      : `[oarlock] log truncated: limit of ${formatBytes(limits.bytesPerRun)} reached, ${state.droppedBytes + unsentBytes} more bytes dropped\n`
  const output = Buffer.from(cut + line + mark)
  return { output, state: { ...state, size: state.size + output.byteLength, lineBytes: 0, cutBytes: 0, ended: true } }
}

const cutMark = (lineBytes: number, cutBytes: number) => ` [oarlock] line cut at ${formatBytes(lineBytes)}, ${cutBytes} more bytes dropped`

function cutLines(state: LogState, bytes: Buffer, maxLine: number): { output: Buffer; lineBytes: number; cutBytes: number } {
  let { lineBytes, cutBytes } = state
  const parts: Buffer[] = []
  for (let at = 0; at < bytes.byteLength; ) {
    const end = bytes.indexOf(newline, at)
    const stop = end === -1 ? bytes.byteLength : end
    let keepEnd = cutBytes > 0 ? at : Math.min(stop, at + maxLine - lineBytes)
    // Do not split a multi-byte character.
    if (keepEnd < stop) while (keepEnd > at && ((bytes[keepEnd] ?? 0) & 0xc0) === 0x80) keepEnd--
    if (keepEnd > at) parts.push(bytes.subarray(at, keepEnd))
    lineBytes += keepEnd - at
    cutBytes += stop - keepEnd
    if (end === -1) break
    if (cutBytes > 0) parts.push(Buffer.from(cutMark(maxLine, cutBytes)))
    parts.push(bytes.subarray(end, end + 1))
    lineBytes = 0
    cutBytes = 0
    at = end + 1
  }
  return { output: parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts), lineBytes, cutBytes }
}

/** The longest part of `output` that fits and ends with a newline. If there is none, the line that was begun before gets its newline. */
function keepWholeLines(output: Buffer, maxBytes: number, isInLine: boolean): Buffer {
  const end = maxBytes === 0 ? -1 : output.lastIndexOf(newline, maxBytes - 1)
  if (end !== -1) return output.subarray(0, end + 1)
  return isInLine ? Buffer.from('\n') : Buffer.alloc(0)
}
