import type { LogSection } from './log-lines.ts'

export type LineRowsOptions = {
  readonly length: number
  readonly sections: readonly LogSection[]
  /** Titles of phases: of a folded one only the first line is shown. */
  readonly folded: ReadonlySet<string>
  /** How many rows a line has that is wrapped, at least 1. Default: lines are not wrapped. */
  readonly rowsOf?: ((line: number) => number) | undefined
}

/** The rows of a log, all of one height, and which line is where. 100,000 lines take about 1 ms. */
export class LineRows {
  /** By line, its first row; then the number of rows. A line of a folded phase has none, and begins where the next line does. */
  readonly #tops: Int32Array
  readonly #length: number

  constructor({ length, sections, folded, rowsOf }: LineRowsOptions) {
    const tops = new Int32Array(length + 1)
    let row = 0
    let next = 0
    let isFolded = false
    for (let line = 0; line < length; line++) {
      const section = sections[next]?.line === line ? sections[next++] : undefined
      tops[line] = row
      if (section || !isFolded) row += rowsOf?.(line) ?? 1
      if (section) isFolded = folded.has(section.title)
    }
    tops[length] = row
    this.#tops = tops
    this.#length = length
  }

  get rows(): number {
    return this.#tops[this.#length] as number
  }

  /** The line that has the row; the last one for a row beyond the end. */
  lineAt(row: number): number {
    let [low, high] = [0, Math.max(0, this.#length - 1)]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#tops[middle + 1] as number) > row) high = middle
      else low = middle + 1
    }
    return low
  }

  /** The first row of a line, or of the first line of its folded phase. */
  rowOf(line: number): number {
    const row = this.#tops[line] as number
    const isHidden = this.#tops[line + 1] === row
    return isHidden ? (this.#tops[this.lineAt(row - 1)] as number) : row
  }

  /** The lines that have rows from `start` on and before `end`, in their order. */
  linesOf(start: number, end: number): number[] {
    const found: number[] = []
    if (end <= start) return found
    for (let line = this.lineAt(start); line < this.#length && (this.#tops[line] as number) < end; line++)
      if (this.#tops[line + 1] !== this.#tops[line]) found.push(line)
    return found
  }
}
