/** Longer lines are split into parts of this size: 64 KiB. */
const defaultMaxLineBytes = 64 * 1024

const newline = 10
const carriageReturn = 13

/** Texts inside of which a long line is not split, because each part is passed on alone: secrets, which are masked there. */
export type Unsplittable = {
  /** Length of the longest one, in characters. */
  readonly maxLength: number
  /** One that begins before position `at` of the text and ends after it. */
  findAcross(text: string, at: number): { start: number; end: number } | undefined
}

/** Where lines go. While it is full, what only the log needs is dropped without being decoded. */
export type OutputLog = { readonly isFull: boolean; drop(bytes: number): void }

export type LineSplitterOptions = {
  /** Default: 64 KiB. */
  maxLineBytes?: number | undefined
  unsplittable?: Unsplittable | undefined
  log?: OutputLog | undefined
  /** Whether only the log needs this: one line, or several with their line ends. Default: never. */
  isForLogOnly?: ((bytes: Buffer) => boolean) | undefined
}

/** The last lines of what was dropped are passed on at the end: an engine reports them when its program has failed. */
const keptLines = 5

/**
 * Splits a byte stream into lines without their line end (`\n` or `\r\n`). Buffers at most `maxLineBytes`: a longer line is split between
 * characters, so that no data is lost and the buffer is bounded (invariant 10). It buffers as much more as the longest unsplittable text has.
 */
export function createLineSplitter(
  onLine: (line: string) => void,
  { maxLineBytes = defaultMaxLineBytes, unsplittable, log, isForLogOnly }: LineSplitterOptions = {},
): { push(chunk: Buffer): void; end(): void } {
  let buffered: Buffer[] = []
  let bufferedBytes = 0
  /** Of what was dropped: the last lines. */
  let kept: Buffer[] = []
  /** The rest of a long line of which a part was dropped: without it, half a secret would be passed on. */
  let isInDroppedLine = false

  const isDropped = (bytes: Buffer): boolean => log?.isFull === true && isForLogOnly?.(bytes) === true

  function drop(bytes: Buffer): void {
    kept.push(bytes)
    const dropped = kept.length > keptLines ? kept.shift() : undefined
    if (dropped) log?.drop(dropped.length + 1)
  }

  /** Passes on the last lines that were dropped, which end with this one. */
  function emitKept(): void {
    const last = kept
    kept = []
    for (const line of last) emit(line)
  }

  function emit(line: Buffer): void {
    onLine(line.toString('utf8', 0, line.at(-1) === carriageReturn ? line.length - 1 : line.length))
  }

  function flush(rest: Buffer): Buffer {
    const line = buffered.length === 0 ? rest : Buffer.concat([...buffered, rest])
    buffered = []
    bufferedBytes = 0
    return line
  }

  function buffer(part: Buffer): void {
    buffered.push(part)
    bufferedBytes += part.length
    // What begins before the cut must be buffered completely, in at most three bytes per character.
    const limit = maxLineBytes + 3 * (unsplittable?.maxLength ?? 0)
    if (bufferedBytes < limit) return
    if (log?.isFull && isForLogOnly) {
      const line = flush(Buffer.alloc(0))
      isInDroppedLine = isForLogOnly(line)
      if (isInDroppedLine) {
        log.drop(line.length)
        return
      }
      buffered = [line]
      bufferedBytes = line.length
    }
    const rest = emitParts(flush(Buffer.alloc(0)), limit)
    if (rest.length > 0) buffer(rest)
  }

  /** Emits parts of the line until it has less than `limit` bytes; returns the rest. */
  function emitParts(line: Buffer, limit: number): Buffer {
    let rest = line
    while (rest.length >= limit) {
      const cut = cutOf(rest, maxLineBytes, unsplittable)
      onLine(rest.toString('utf8', 0, cut))
      rest = rest.subarray(cut)
    }
    return rest
  }

  /** Drops the rest of a line; returns where the next one begins. */
  function skipLine(chunk: Buffer): number {
    const end = chunk.indexOf(newline)
    isInDroppedLine = end < 0
    const next = end < 0 ? chunk.length : end + 1
    log?.drop(next)
    return next
  }

  /** Drops all lines of a chunk together if only the log needs them, except the last ones; returns where these begin. */
  function skipLines(chunk: Buffer, from: number): number {
    let start = chunk.lastIndexOf(newline)
    for (let lines = 0; lines < keptLines && start > from; lines++) start = chunk.lastIndexOf(newline, start - 1)
    if (start < from || !isDropped(chunk.subarray(from, start + 1))) return from
    log?.drop(start + 1 - from)
    return start + 1
  }

  return {
    push(chunk) {
      let start = isInDroppedLine ? skipLine(chunk) : 0
      let isFirst = true
      for (let at = chunk.indexOf(newline, start); at >= 0; at = chunk.indexOf(newline, start)) {
        const part = chunk.subarray(start, at)
        start = at + 1
        if (bufferedBytes + part.length > maxLineBytes) {
          buffer(part)
          if (isInDroppedLine) isInDroppedLine = false
          else emit(emitParts(flush(Buffer.alloc(0)), maxLineBytes + 1))
        } else {
          const line = flush(part)
          if (isDropped(line)) drop(line)
          else emit(line)
        }
        // After the line that the last chunk began.
        if (isFirst && log?.isFull) start = skipLines(chunk, start)
        isFirst = false
      }
      if (start < chunk.length) buffer(chunk.subarray(start))
    },
    end() {
      emitKept()
      if (bufferedBytes > 0) emit(emitParts(flush(Buffer.alloc(0)), maxLineBytes + 1))
    },
  }
}

/** Where to split: at most at `max`, before an unsplittable text, or after it if nothing precedes it. */
function cutOf(line: Buffer, max: number, unsplittable: Unsplittable | undefined): number {
  const cut = characterStart(line, max)
  if (!unsplittable || unsplittable.maxLength === 0) return cut
  const text = line.toString('utf8')
  const wanted = line.toString('utf8', 0, cut).length
  const follow = (side: 'start' | 'end'): number => {
    let at = wanted
    for (let found = unsplittable.findAcross(text, at); found; found = unsplittable.findAcross(text, at)) at = found[side]
    return at
  }
  const at = follow('start') || follow('end')
  return at === wanted ? cut : byteOffset(line, at)
}

/** The position in bytes of the character at `index`. Bytes that are not UTF-8 are one character each, or several together. */
function byteOffset(line: Buffer, index: number): number {
  let low = 0
  let high = line.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (line.toString('utf8', 0, middle).length < index) low = middle + 1
    else high = middle
  }
  while (low < line.length && (line[low]! & 0xc0) === 0x80) low++
  return low
}

/** The last position at or before `at` where a UTF-8 character starts; `at` itself for bytes that are not UTF-8. */
function characterStart(bytes: Buffer, at: number): number {
  for (let back = 0; back < 4; back++) {
    const byte = bytes[at - back]
    if (byte === undefined || (byte & 0xc0) !== 0x80) return at - back > 0 ? at - back : at
  }
  return at
}
