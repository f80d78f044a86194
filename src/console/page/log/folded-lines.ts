import type { LogSection } from './log-lines.ts'

/** Places of lines in a log some of whose phases are folded: of a folded phase only the first line is shown. */
export class FoldedLines {
  /** The lines that are shown, as ranges in their order. */
  readonly #ranges: readonly { readonly line: number; readonly row: number; readonly count: number }[]
  readonly rows: number

  /** @param folded titles of phases. */
  constructor(length: number, sections: readonly LogSection[], folded: ReadonlySet<string>) {
    const ranges: { line: number; row: number; count: number }[] = []
    let row = 0
    const add = (line: number, end: number) => {
      if (end <= line) return
      ranges.push({ line, row, count: end - line })
      row += end - line
    }
    if (sections.length === 0) add(0, length)
    sections.forEach(({ title, line }, index) => {
      const end = sections[index + 1]?.line ?? length
      add(line, folded.has(title) ? line + 1 : end)
    })
    this.#ranges = ranges
    this.rows = row
  }

  lineAt(row: number): number {
    const range = this.#ranges.findLast(each => each.row <= row)
    return range ? range.line + row - range.row : row
  }

  /** The row of a line, or of the first line of its folded phase. */
  rowOf(line: number): number {
    const range = this.#ranges.findLast(each => each.line <= line)
    return range ? range.row + Math.min(line - range.line, range.count - 1) : line
  }
}
