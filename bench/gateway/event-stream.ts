import type { Client } from '../../src/kubernetes/client/index.ts'

const stamp = Buffer.from('"at":"')
const version = Buffer.from('"resourceVersion":"')

/** A watch whose events carry the time of their write: measures without decoding objects. */
export class EventStream {
  readonly latenciesMs: number[] = []
  events = 0
  /** Events whose version is not above that of the one before. */
  outOfOrder = 0
  readonly opened: Promise<void>
  readonly done: Promise<void>
  readonly #abort = new AbortController()
  #last = 0

  constructor(client: Client, path: string) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.opened = promise
    this.done = this.#run(client, path, resolve)
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    await this.done
  }

  async #run(client: Client, path: string, opened: () => void): Promise<void> {
    try {
      const { body } = await client.stream({ method: 'GET', path, signal: this.#abort.signal, idleTimeoutMs: 0 })
      opened()
      let rest: Buffer = Buffer.alloc(0)
      for await (const chunk of body) {
        const nowMs = performance.now()
        const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, Buffer.from(chunk)])
        let start = 0
        for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, start)) {
          this.#line(bytes.subarray(start, end), nowMs)
          start = end + 1
        }
        rest = bytes.subarray(start)
      }
    } catch (error) {
      if (!this.#abort.signal.aborted) throw error
    }
  }

  #line(line: Buffer, nowMs: number): void {
    const at = line.indexOf(stamp)
    if (at < 0) return
    this.events++
    this.latenciesMs.push(nowMs - Number(line.toString('latin1', at + stamp.length, line.indexOf(34, at + stamp.length))))
    const from = line.indexOf(version) + version.length
    const revision = Number(line.toString('latin1', from, line.indexOf(34, from)))
    if (revision <= this.#last) this.outOfOrder++
    this.#last = revision
  }
}
