/** Longer lines are split into parts of this size: 64 KiB. */
const defaultMaxLineBytes = 64 * 1024

const newline = 10
const carriageReturn = 13

/**
 * Splits a byte stream into lines without their line end (`\n` or `\r\n`). Buffers at most `maxLineBytes`: a longer line is split between
 * characters, so that no data is lost and the buffer is bounded (invariant 10).
 */
export function createLineSplitter(
  onLine: (line: string) => void,
  maxLineBytes = defaultMaxLineBytes,
): { push(chunk: Buffer): void; end(): void } {
  let buffered: Buffer[] = []
  let bufferedBytes = 0

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
    if (bufferedBytes < maxLineBytes) return
    let line = flush(Buffer.alloc(0))
    while (line.length >= maxLineBytes) {
      const cut = characterStart(line, maxLineBytes)
      onLine(line.toString('utf8', 0, cut))
      line = line.subarray(cut)
    }
    if (line.length > 0) buffer(line)
  }

  return {
    push(chunk) {
      let start = 0
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, start)) {
        const part = chunk.subarray(start, at)
        start = at + 1
        if (bufferedBytes + part.length > maxLineBytes) {
          buffer(part)
          emit(flush(Buffer.alloc(0)))
        } else emit(flush(part))
      }
      if (start < chunk.length) buffer(chunk.subarray(start))
    },
    end() {
      if (bufferedBytes > 0) emit(flush(Buffer.alloc(0)))
    },
  }
}

/** The last position at or before `at` where a UTF-8 character starts; `at` itself for bytes that are not UTF-8. */
function characterStart(bytes: Buffer, at: number): number {
  for (let back = 0; back < 4; back++) {
    const byte = bytes[at - back]
    if (byte === undefined || (byte & 0xc0) !== 0x80) return at - back > 0 ? at - back : at
  }
  return at
}
