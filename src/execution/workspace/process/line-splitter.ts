/** Longer lines come out in pieces of this many bytes: 64 KiB. */
const defaultMaxLineBytes = 64 * 1024

const newline = 10
const carriageReturn = 13

/**
 * Cuts a byte stream into lines without their line end (`\n` or `\r\n`). Holds back at most `maxLineBytes`:
 * a longer line comes out in pieces, cut between characters, so that nothing is lost and nothing grows (invariant 10).
 */
export function createLineSplitter(
  onLine: (line: string) => void,
  maxLineBytes = defaultMaxLineBytes,
): { push(chunk: Buffer): void; end(): void } {
  let pieces: Buffer[] = []
  let heldBytes = 0

  function emit(line: Buffer): void {
    onLine(line.toString('utf8', 0, line.at(-1) === carriageReturn ? line.length - 1 : line.length))
  }

  function take(rest: Buffer): Buffer {
    const line = pieces.length === 0 ? rest : Buffer.concat([...pieces, rest])
    pieces = []
    heldBytes = 0
    return line
  }

  function hold(piece: Buffer): void {
    pieces.push(piece)
    heldBytes += piece.length
    if (heldBytes < maxLineBytes) return
    let line = take(Buffer.alloc(0))
    while (line.length >= maxLineBytes) {
      const cut = characterStart(line, maxLineBytes)
      onLine(line.toString('utf8', 0, cut))
      line = line.subarray(cut)
    }
    if (line.length > 0) hold(line)
  }

  return {
    push(chunk) {
      let start = 0
      for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, start)) {
        const part = chunk.subarray(start, at)
        start = at + 1
        if (heldBytes + part.length > maxLineBytes) {
          hold(part)
          emit(take(Buffer.alloc(0)))
        } else emit(take(part))
      }
      if (start < chunk.length) hold(chunk.subarray(start))
    },
    end() {
      if (heldBytes > 0) emit(take(Buffer.alloc(0)))
    },
  }
}

/** The last place at or before `at` where a UTF-8 character starts; `at` itself for bytes that are no UTF-8. */
function characterStart(bytes: Buffer, at: number): number {
  for (let back = 0; back < 4; back++) {
    const byte = bytes[at - back]
    if (byte === undefined || (byte & 0xc0) !== 0x80) return at - back > 0 ? at - back : at
  }
  return at
}
