/** What brings the chunks, and is told what becomes of them. */
export type StreamSource = {
  /** Everything that waited was taken. */
  taken?(): void
  /** The reader has done with a chunk of this `length`. */
  read?(length: number): void
  /** The reader left before the end. */
  leave(): void
}

/** Chunks between a source and one reader: its source is told how far that one is, and holds back what it does not take (invariant 10). */
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
          this.#source.taken?.()
          for (const chunk of chunks) {
            yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
            this.#source.read?.(chunk.length)
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
        this.#source.leave()
      }
    }
  }
}
