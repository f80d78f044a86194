import type { RootDirectory } from '../../../../kubernetes/util/index.ts'
import { type PulumiEvent, parsePulumiEvent } from '../../../pulumi-backend/index.ts'

/** What follows is not read. */
const maxBytes = 256 * 1024 * 1024
/** An event has the inputs and outputs of a resource before and after the step: those of a Kubernetes object of 1 MiB are about 4 MiB. */
const maxLineBytes = 8 * 1024 * 1024
const newline = 0x0a

/** Reads the file of `--event-log`, in which the CLI appends each event as a line of JSON. */
export class EventLog {
  readonly #files: Pick<RootDirectory, 'readPieces'>
  readonly #path: string
  #readBytes = 0
  /** The start of a line whose end is not read yet: at most `maxLineBytes`, or nothing if it is longer. */
  #line: Buffer[] = []
  #lineBytes = 0
  readonly #log: (message: string) => void
  readonly #logged = new Set<string>()

  /** @param log reports, once each, that a line is too long and that the file is. */
  constructor(files: Pick<RootDirectory, 'readPieces'>, path: string, log: (message: string) => void) {
    this.#files = files
    this.#path = path
    this.#log = log
  }

  /** The events that were added since the last call. A line that is not complete yet is read by a later call. */
  async read(): Promise<PulumiEvent[]> {
    const events: PulumiEvent[] = []
    const options = { maxBytes: maxBytes - this.#readBytes, start: this.#readBytes, truncate: true }
    try {
      await this.#files.readPieces(this.#path, options, piece => {
        this.#readBytes += piece.length
        this.#add(piece, events)
      })
    } catch (error) {
      // What was read is not read again.
      if (events.length === 0) throw error
    }
    if (this.#readBytes >= maxBytes)
      this.#logOnce(`the event log of the Pulumi CLI has reached ${maxBytes} bytes: later events are not read`)
    return events
  }

  #add(bytes: Buffer, events: PulumiEvent[]): void {
    let start = 0
    for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
      this.#extend(bytes.subarray(start, end))
      const event = this.#lineBytes <= maxLineBytes ? parseLine(Buffer.concat(this.#line).toString('utf8')) : undefined
      if (event) events.push(event)
      this.#line = []
      this.#lineBytes = 0
      start = end + 1
    }
    // A piece is valid only until this call returns.
    if (start < bytes.length) this.#extend(Buffer.from(bytes.subarray(start)))
  }

  #extend(part: Buffer): void {
    this.#lineBytes += part.length
    if (this.#lineBytes <= maxLineBytes) return void this.#line.push(part)
    this.#line = []
    this.#logOnce(`skipped a line of the event log of the Pulumi CLI that is longer than ${maxLineBytes} bytes`)
  }

  #logOnce(message: string): void {
    if (this.#logged.has(message)) return
    this.#logged.add(message)
    this.#log(message)
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
