import { visibleText } from '../parts/visible-text.ts'
import { type AnsiStyle, plainStyle, readAnsi, type StyledSpan } from './ansi.ts'
import { ResourceProgress } from './resource-progress.ts'
import { textColumns } from './text-columns.ts'

/** Part of a log: a phase of its Run. `line` is the index of its first line. */
export type LogSection = { readonly title: 'Preparing' | 'Planning' | 'Applying'; readonly line: number }

/** `2026-06-01T10:00:00Z `, or as many characters of `-` where the time is unknown. */
const prefixLength = 21
/** The characters that are shown of a wrapped line: more than the log store keeps of a line (16 KiB and the mark that the rest was dropped). */
export const maxShownCharacters = 20_000
/** The width of the note that is shown in place of the rest. */
const cutNoteColumns = 60
const sectionTitles = ['Preparing', 'Planning', 'Applying'] as const

/** A log as it arrives, with the time of each line before it. {@link offset} is where to continue in the stored log, which has no times. */
export class LogLines {
  /** Without control characters. */
  readonly texts: string[] = []
  /** Of each line, those of what is shown of it. */
  readonly columns: number[] = []
  /** Milliseconds since the epoch; 0 is unknown. */
  readonly timesMs: number[] = []
  /** The phases that have begun, in their order. Empty for a log that shows none. */
  readonly sections: LogSection[] = []
  readonly progress = new ResourceProgress()
  /** Bytes of the stored log before the first line that has not arrived completely. */
  offset = 0
  /** By line, of those that have colours. */
  readonly #spans = new Map<number, readonly StyledSpan[]>()
  readonly #decoder = new TextDecoder()
  #style: AnsiStyle = plainStyle
  /** Pieces of the line that has not arrived completely: they are joined once, however many they are. */
  #rest: Uint8Array[] = []

  get length(): number {
    return this.texts.length
  }

  spansOf(line: number): readonly StyledSpan[] {
    return this.#spans.get(line) ?? []
  }

  push(chunk: Uint8Array): void {
    const end = chunk.lastIndexOf(10) + 1
    if (end > 0) {
      this.#add(joined([...this.#rest, chunk.subarray(0, end)]))
      this.#rest = []
    }
    if (end < chunk.length) this.#rest.push(chunk.slice(end))
  }

  /** A connection was lost: the next chunk begins at {@link offset}. */
  restart(): void {
    this.#rest = []
  }

  /** The log has ended: what is left is its last line. */
  end(): void {
    const rest = joined(this.#rest)
    if (rest.length > prefixLength) this.#add(joined([rest, new Uint8Array([10])]))
    this.#rest = []
  }

  #add(bytes: Uint8Array): void {
    const lines = this.#decoder.decode(bytes).split('\n')
    lines.pop()
    for (const line of lines) this.#addLine(line)
    this.offset += bytes.length - lines.length * prefixLength
  }

  #addLine(prefixed: string): void {
    const index = this.texts.length
    const timeMs = Date.parse(prefixed.slice(0, prefixLength - 1)) || 0
    let line = withoutOverwritten(prefixed.slice(prefixLength))
    // Almost no line has control characters, or others that are replaced.
    if (visibleText(line) !== line || this.#style !== plainStyle) {
      const { text, spans, style } = readAnsi(line, this.#style)
      line = text
      this.#style = style
      if (spans.length > 0) this.#spans.set(index, spans)
    }
    this.texts.push(line)
    this.timesMs.push(timeMs)
    const shown = line.slice(0, maxShownCharacters)
    this.columns.push(textColumns(shown) + (shown === line ? 0 : cutNoteColumns))
    this.progress.add(shown, index, timeMs || undefined)
    const next = sectionTitles[this.sections.length]
    if (next && (next === 'Preparing' ? index === 0 && line.startsWith('Run ') : line === next))
      this.sections.push({ title: next, line: index })
  }
}

/** A terminal shows what follows the last carriage return. */
function withoutOverwritten(line: string): string {
  if (!line.includes('\r')) return line
  const parts = line.split('\r').filter(part => part !== '')
  return parts.at(-1) ?? ''
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts
  if (first && parts.length === 1) return first
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
