import { escapeControls } from './escape-controls.ts'

const hideCursor = '\u001b[?25l'
const showCursor = '\u001b[?25h'
const clearLine = '\u001b[2K'

/** A block of lines at the bottom of a terminal that is redrawn in place. Lines must not be wider than the terminal. */
export class LiveScreen {
  readonly #stream: { write(text: string): unknown }
  #height = 0

  constructor(stream: { write(text: string): unknown }) {
    this.#stream = stream
  }

  /** Replaces the block. */
  draw(lines: readonly string[]): void {
    const body = lines.map(line => `${clearLine}${escapeControls(line)}\n`).join('')
    // Clears what a previous, higher block left below this one.
    this.#stream.write(`${this.#height === 0 ? hideCursor : this.#up()}${body}\u001b[J`)
    this.#height = lines.length
  }

  /** Leaves the block on the screen and shows the cursor again. */
  end(): void {
    if (this.#height > 0) this.#stream.write(showCursor)
    this.#height = 0
  }

  #up(): string {
    return `\u001b[${this.#height}A\r`
  }
}
