import type { SelectedValues } from '../../kubernetes/util/index.ts'

/** The longest line of a watch; see `maxLineBytes` of the client. */
const maxLineBytes = 16 * 1024 * 1024

/** A line of a partition's watch, with what its mark says (`http/partition-protocol.ts` of the server). `line` is as the client gets it. */
export type MarkedLine =
  | { readonly kind: 'initial'; readonly line: Uint8Array }
  | {
      readonly kind: 'event'
      readonly revision: number
      readonly line: Uint8Array
      /** Of a shared watch: what selectors select by. */
      readonly selected?: SelectedValues
      /** Of a shared watch: the event for selections that the object leaves. */
      readonly leaving?: Uint8Array
    }
  | { readonly kind: 'leaving'; readonly revision: number; readonly line: Uint8Array }
  /** The partition knows home's map of this version; everything that is written there later comes after the line. */
  | { readonly kind: 'map'; readonly revision: number }
  | { readonly kind: 'bookmark'; readonly revision: number; readonly line: Uint8Array }
  | { readonly kind: 'error'; readonly line: Uint8Array }

const [newLine, space, bookmarkMark, errorMark, selectedMark, leavingMark, mapMark] = [...Buffer.from('\n BESLM')] as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
]
const initialEnd = Buffer.from('"k8s.io/initial-events-end":"true"')

export const isInitialEnd = ({ line }: { readonly line: Uint8Array }): boolean =>
  Buffer.from(line.buffer, line.byteOffset, line.byteLength).includes(initialEnd)

/**
 * The lines of a watch, however it is chunked.
 * @throws {Error} for a line without a mark, one that is too long, or an end within a line.
 */
export async function* watchLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<MarkedLine[]> {
  let pieces: Buffer[] = []
  let size = 0
  let leaving: MarkedLine | undefined
  const read = (bytes: Buffer): MarkedLine | undefined => {
    const line = readLine(bytes)
    if (line.kind === 'leaving') {
      leaving = line
      return undefined
    }
    if (line.kind !== 'event' || leaving?.kind !== 'leaving') return line
    const event = leaving.revision === line.revision ? { ...line, leaving: leaving.line } : line
    leaving = undefined
    return event
  }
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const lines: MarkedLine[] = []
    let start = 0
    for (let end = bytes.indexOf(newLine); end >= 0; end = bytes.indexOf(newLine, start)) {
      const last = bytes.subarray(start, end + 1)
      let line: MarkedLine | undefined
      try {
        line = read(pieces.length === 0 ? last : Buffer.concat([...pieces, last]))
      } catch (error) {
        // What came before is valid.
        if (lines.length > 0) yield lines
        throw error
      }
      pieces = []
      size = 0
      if (line) lines.push(line)
      start = end + 1
    }
    if (start < bytes.length) {
      pieces.push(bytes.subarray(start))
      size += bytes.length - start
      if (size > maxLineBytes) throw new Error(`a line of the watch is longer than ${maxLineBytes} bytes`)
    }
    if (lines.length > 0) yield lines
  }
  if (size > 0) throw new Error('the watch ended within a line')
}

function readLine(bytes: Buffer): MarkedLine {
  const end = bytes.indexOf(space)
  const [first] = bytes
  const line = bytes.subarray(end + 1)
  if (first === errorMark && end === 1) return checked({ kind: 'error', line }, bytes)
  const hasLetter = first === bookmarkMark || first === selectedMark || first === leavingMark || first === mapMark
  const digits = end < 0 || end > 18 ? '' : bytes.toString('latin1', hasLetter ? 1 : 0, end)
  const revision = Number(digits)
  if (!/^\d+$/.test(digits) || !Number.isSafeInteger(revision)) throw invalid(bytes)
  if (first === bookmarkMark) return checked({ kind: 'bookmark', revision, line }, bytes)
  if (first === mapMark) return { kind: 'map', revision }
  if (first === leavingMark) return checked({ kind: 'leaving', revision, line }, bytes)
  if (first === selectedMark) return readSelected(bytes, revision, end + 1)
  return checked(revision === 0 ? { kind: 'initial', line } : { kind: 'event', revision, line }, bytes)
}

function readSelected(bytes: Buffer, revision: number, start: number): MarkedLine {
  const lengthEnd = bytes.indexOf(space, start)
  const valuesEnd = lengthEnd + 1 + Number(bytes.toString('latin1', start, lengthEnd))
  if (lengthEnd < 0 || !(valuesEnd < bytes.length)) throw invalid(bytes)
  let selected: SelectedValues
  try {
    selected = JSON.parse(bytes.toString('latin1', lengthEnd + 1, valuesEnd)) as SelectedValues
  } catch {
    throw invalid(bytes)
  }
  return checked({ kind: 'event', revision, line: bytes.subarray(valuesEnd), selected }, bytes)
}

/** Every line that is passed on begins and ends as an event does: what is between is not looked at. */
function checked<Line extends MarkedLine & { readonly line: Uint8Array }>(marked: Line, bytes: Buffer): Line {
  const { line } = marked
  if (line[0] === 0x7b && line.at(-2) === 0x7d) return marked
  throw invalid(bytes)
}

const invalid = (bytes: Buffer) => new Error(`a line of the watch is no marked event: ${JSON.stringify(bytes.toString('latin1', 0, 40))}`)
