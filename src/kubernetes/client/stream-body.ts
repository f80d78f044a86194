/** The producer of the chunks, notified of the reader's progress. */
export type StreamSource = {
  /** The reader took everything that was buffered. */
  drained?(): void
  /** The reader processed a chunk of this `length`. */
  consumed?(length: number): void
  /** The reader left before the end. */
  cancel(): void
}

/** A buffer of chunks between a source and one reader: the source follows the progress of the reader and pauses when it lags (invariant 10). */
export class StreamBody implements AsyncIterable<Buffer> {
  readonly #source: StreamSource
  #chunks: (string | Buffer)[] = []
  #isEnded = false
  #error: unknown
  #wake: (() => void) | undefined

  constructor(source: StreamSource) {
    this.#source = source
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  push(chunk: string | Buffer): void {
    if (this.#isEnded) return
    this.#chunks.push(chunk)
    this.#wake?.()
  }

  end(): void {
    this.#isEnded = true
    this.#wake?.()
  }

  fail(error: unknown): void {
    if (this.#isEnded) return
    this.#error = error
    this.end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    try {
      for (;;) {
        const chunks = this.#chunks
        if (chunks.length > 0) {
          this.#chunks = []
          this.#source.drained?.()
          for (const chunk of chunks) {
            yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
            this.#source.consumed?.(chunk.length)
          }
        } else if (this.#isEnded) {
          if (this.#error) throw this.#error
          return
        } else {
          await new Promise<void>(resolve => {
            this.#wake = resolve
          })
          this.#wake = undefined
        }
      }
    } finally {
      if (!this.#isEnded) {
        this.#isEnded = true
        this.#source.cancel()
      }
    }
  }
}
