import { type AnsiStyle, plainStyle, readAnsi, type StyledSpan } from './ansi.ts'
import { ResourceProgress } from './resource-progress.ts'

/** Part of a log: a phase of its Run. `line` is the index of its first line. */
export type LogSection = { readonly title: 'Preparing' | 'Planning' | 'Applying'; readonly line: number }

/** `2026-06-01T10:00:00Z `, or as many characters of `-` where the time is unknown. */
const prefixLength = 21
const sectionTitles = ['Preparing', 'Planning', 'Applying'] as const

/** A log as it arrives, with the time of each line before it. {@link offset} is where to continue in the stored log, which has no times. */
export class LogLines {
  /** Without control characters. */
  readonly texts: string[] = []
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
  #rest: Uint8Array = new Uint8Array()

  get length(): number {
    return this.texts.length
  }

  spansOf(line: number): readonly StyledSpan[] {
    return this.#spans.get(line) ?? []
  }

  push(chunk: Uint8Array): void {
    const bytes = this.#rest.length === 0 ? chunk : joined(this.#rest, chunk)
    const end = bytes.lastIndexOf(10) + 1
    this.#rest = bytes.slice(end)
    if (end > 0) this.#add(bytes.subarray(0, end))
  }

  /** A connection was lost: the next chunk begins at {@link offset}. */
  restart(): void {
    this.#rest = new Uint8Array()
  }

  /** The log has ended: what is left is its last line. */
  end(): void {
    if (this.#rest.length > prefixLength) this.#add(joined(this.#rest, new Uint8Array([10])))
    this.#rest = new Uint8Array()
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
    // Almost no line has control characters.
    if (hasControls(line) || this.#style !== plainStyle) {
      const { text, spans, style } = readAnsi(line, this.#style)
      line = text
      this.#style = style
      if (spans.length > 0) this.#spans.set(index, spans)
    }
    this.texts.push(line)
    this.timesMs.push(timeMs)
    this.progress.add(line, index, timeMs || undefined)
    const next = sectionTitles[this.sections.length]
    if (next && (next === 'Preparing' ? index === 0 && line.startsWith('Run ') : line === next))
      this.sections.push({ title: next, line: index })
  }
}

const hasControls = (line: string) => /[^\P{Cc}\t]/u.test(line)

/** A terminal shows what follows the last carriage return. */
function withoutOverwritten(line: string): string {
  if (!line.includes('\r')) return line
  const parts = line.split('\r').filter(part => part !== '')
  return parts.at(-1) ?? ''
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length)
  both.set(a)
  both.set(b, a.length)
  return both
}
