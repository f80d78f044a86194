/** The longest line of a watch: etcd stores objects of up to 1.5 MB, and their JSON with managedFields can be several times that. */
export const maxLineBytes = 16_777_216

/** Thrown when a watch sends data that is not an event in JSON. */
export class WatchDecodeError extends Error {
  override readonly name = 'WatchDecodeError'
}

/** Splits a byte stream into lines, however it is chunked. Buffers at most `limitBytes` of an unfinished line (invariant 10). */
export class LineSplitter {
  readonly #limitBytes: number
  #pieces: Buffer[] = []
  #size = 0

  constructor(limitBytes: number = maxLineBytes) {
    this.#limitBytes = limitBytes
  }

  /** The lines that `chunk` completes, without their line ends; empty lines are skipped. @throws {WatchDecodeError} above the limit. */
  push(chunk: Buffer): string[] {
    const lines: string[] = []
    let start = 0
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
      const line = this.#pieces.length > 0 ? this.#join(chunk.subarray(start, end)) : chunk.toString('utf8', start, end)
      if (line !== '') lines.push(line)
      start = end + 1
    }
    if (start < chunk.length) {
      this.#pieces.push(start === 0 ? chunk : chunk.subarray(start))
      this.#size += chunk.length - start
      if (this.#size > this.#limitBytes) {
        throw new WatchDecodeError(`a line of the watch is longer than ${this.#limitBytes} bytes`)
      }
    }
    return lines
  }

  /** The length of the unfinished line. */
  get bufferedBytes(): number {
    return this.#size
  }

  #join(last: Buffer): string {
    const line = Buffer.concat([...this.#pieces, last]).toString('utf8')
    this.#pieces = []
    this.#size = 0
    return line
  }
}
