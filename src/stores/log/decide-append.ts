import { formatBytes } from '../../kubernetes/util/index.ts'

/** Bounds of one Run's log (invariant 10). */
export type RunLogLimits = {
  /** Stored bytes; what comes after is counted and dropped, with a mark. */
  readonly bytesPerRun: number
  /** Bytes of one line without its newline; the rest of the line is dropped, with a mark. */
  readonly lineBytes: number
}

/** Where a log stands. `received` counts what came in, `size` what is stored; cuts and marks make them differ. */
export type LogState = {
  readonly received: number
  readonly size: number
  /** Bytes of the last, unfinished line that are stored. */
  readonly lineBytes: number
  /** Bytes of that line dropped so far. */
  readonly cutBytes: number
  /** Bytes dropped since the limit of the log was reached; undefined before. */
  readonly droppedBytes?: number
  readonly ended: boolean
}

export const emptyLog: LogState = { received: 0, size: 0, lineBytes: 0, cutBytes: 0, ended: false }

export type AppendDecision =
  | { readonly kind: 'append'; readonly state: LogState; readonly output: Buffer }
  /** All of it came before: an append whose answer was lost. */
  | { readonly kind: 'duplicate' }
  /** Bytes between `expected` and the given offset are missing. */
  | { readonly kind: 'gap'; readonly expected: number }
  | { readonly kind: 'ended' }

const newline = 10

/**
 * Decides what is stored of `bytes`, which the sender counts from `offset` of all it ever sent. What was received before is skipped,
 * so a repeated append does not double; a gap is refused. Invariant 10: `size` stays below `bytesPerRun` plus the marks.
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
  const room = limits.bytesPerRun - state.size
  if (output.byteLength <= room) {
    return { kind: 'append', output, state: { ...state, received, size: state.size + output.byteLength, lineBytes, cutBytes } }
  }
  const kept = keepWholeLines(output, Math.max(0, room), state.lineBytes > 0)
  const mark = Buffer.from(`[oarlock] log truncated: limit of ${formatBytes(limits.bytesPerRun)} reached, what follows is dropped\n`)
  const stored = Buffer.concat([kept, mark])
  const droppedBytes = output.byteLength - kept.byteLength
  return {
    kind: 'append',
    output: stored,
    state: { ...state, received, size: state.size + stored.byteLength, lineBytes: 0, cutBytes: 0, droppedBytes },
  }
}

/** Ends a log: finishes its last line, and says how much was dropped. */
export function decideEnd(state: LogState, limits: RunLogLimits): { state: LogState; output: Buffer } {
  if (state.ended) return { state, output: Buffer.alloc(0) }
  const cut = state.cutBytes > 0 ? cutMark(limits.lineBytes, state.cutBytes) : ''
  const line = state.lineBytes > 0 ? '\n' : ''
  const mark =
    state.droppedBytes === undefined
      ? ''
      : `[oarlock] log truncated: limit of ${formatBytes(limits.bytesPerRun)} reached, ${state.droppedBytes} more bytes dropped\n`
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
    let take = cutBytes > 0 ? at : Math.min(stop, at + maxLine - lineBytes)
    // Not through a character of several bytes.
    if (take < stop) while (take > at && ((bytes[take] ?? 0) & 0xc0) === 0x80) take--
    if (take > at) parts.push(bytes.subarray(at, take))
    lineBytes += take - at
    cutBytes += stop - take
    if (end === -1) break
    if (cutBytes > 0) parts.push(Buffer.from(cutMark(maxLine, cutBytes)))
    parts.push(bytes.subarray(end, end + 1))
    lineBytes = 0
    cutBytes = 0
    at = end + 1
  }
  return { output: parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts), lineBytes, cutBytes }
}

/** The most of `output` that fits and ends with a newline; a line begun before it gets its newline. */
function keepWholeLines(output: Buffer, room: number, isInLine: boolean): Buffer {
  const end = room === 0 ? -1 : output.lastIndexOf(newline, room - 1)
  if (end !== -1) return output.subarray(0, end + 1)
  return isInLine ? Buffer.from('\n') : Buffer.alloc(0)
}
