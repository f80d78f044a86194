import type { RootDirectory } from '../../../../kubernetes/util/index.ts'
import { type PulumiEvent, parsePulumiEvent } from '../../../pulumi-backend/index.ts'

/** As much as the CLI may write; what follows is not read. */
const maxBytes = 256 * 1024 * 1024
const newline = 0x0a

/** Reads the file of `--event-log`, in which the CLI appends each event as a line of JSON. */
export class EventLog {
  readonly #files: Pick<RootDirectory, 'readPieces'>
  readonly #path: string
  #readBytes = 0
  #line: Buffer[] = []

  constructor(files: Pick<RootDirectory, 'readPieces'>, path: string) {
    this.#files = files
    this.#path = path
  }

  /** The events that were added since the last call. A line that is not complete yet is read by a later call. */
  async read(): Promise<PulumiEvent[]> {
    const events: PulumiEvent[] = []
    let position = 0
    await this.#files.readPieces(this.#path, { maxBytes }, piece => {
      const skipped = Math.min(piece.length, Math.max(0, this.#readBytes - position))
      position += piece.length
      if (skipped < piece.length) this.#add(piece.subarray(skipped), events)
    })
    this.#readBytes = Math.max(this.#readBytes, position)
    return events
  }

  #add(bytes: Buffer, events: PulumiEvent[]): void {
    let start = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      // A piece is valid only until this call returns.
      const line = Buffer.concat([...this.#line.splice(0), bytes.subarray(start, end)])
      const event = parseLine(line.toString('utf8'))
      if (event) events.push(event)
      start = end + 1
    }
    if (start < bytes.length) this.#line.push(Buffer.from(bytes.subarray(start)))
  }
}

function parseLine(line: string): PulumiEvent | undefined {
  try {
    return parsePulumiEvent(JSON.parse(line))
  } catch {
    // The program can write to this file too.
    return undefined
  }
}
