/** The longest line of a watch; see `maxLineBytes` of the client. */
const maxLineBytes = 16 * 1024 * 1024

/** A line of a partition's watch, with what its mark says (`http/partition-protocol.ts` of the server). `line` is as the client gets it. */
export type MarkedLine =
  | { readonly kind: 'initial'; readonly line: Uint8Array }
  | { readonly kind: 'event'; readonly revision: number; readonly line: Uint8Array }
  | { readonly kind: 'bookmark'; readonly revision: number; readonly line: Uint8Array }
  | { readonly kind: 'error'; readonly line: Uint8Array }

const [newLine, space, bookmarkMark, errorMark] = [...Buffer.from('\n BE')] as [number, number, number, number]
const initialEnd = Buffer.from('"k8s.io/initial-events-end":"true"')

export const isInitialEnd = ({ line }: { readonly line: Uint8Array }): boolean =>
  Buffer.from(line.buffer, line.byteOffset, line.byteLength).includes(initialEnd)

/**
 * The lines of a watch, however it is chunked.
 * @throws {Error} for a line without a mark, or one that is too long.
 */
export async function* watchLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<MarkedLine[]> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
    const lines: MarkedLine[] = []
    let start = 0
    for (let end = rest.indexOf(newLine); end >= 0; end = rest.indexOf(newLine, start)) {
      lines.push(readLine(rest.subarray(start, end + 1)))
      start = end + 1
    }
    rest = rest.subarray(start)
    if (rest.length > maxLineBytes) throw new Error(`a line of the watch is longer than ${maxLineBytes} bytes`)
    if (lines.length > 0) yield lines
  }
}

function readLine(bytes: Buffer): MarkedLine {
  const end = bytes.indexOf(space)
  const line = bytes.subarray(end + 1)
  const first = bytes[0]
  if (first === errorMark && end === 1) return { kind: 'error', line }
  const isBookmark = first === bookmarkMark
  const revision = end < 0 || end > 18 ? Number.NaN : Number(bytes.toString('latin1', isBookmark ? 1 : 0, end))
  if (!Number.isSafeInteger(revision))
    throw new Error(`a line of the watch has no mark: ${JSON.stringify(bytes.toString('latin1', 0, 40))}`)
  if (isBookmark) return { kind: 'bookmark', revision, line }
  return revision === 0 ? { kind: 'initial', line } : { kind: 'event', revision, line }
}
