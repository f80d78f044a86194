/** An external system behind HTTP that accepts duplicates and counts them. `POST /things` makes another thing, whatever its name; `GET` looks by name or id. */
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monotonicMs } from './monotonic-ms.ts'

/** One creation, in the order of arrival. `member` is the replica that asked for it. */
export type Creation = { readonly name: string; readonly id: string; readonly member: string; readonly receivedMs: number }

export class CloudServer {
  readonly creations: Creation[] = []
  /** Time of the observations of each name; the last, and the longest between two. */
  readonly observed = new Map<string, { lastMs: number; longestMs: number; count: number }>()
  /** How long each call takes. */
  latencyMs: number
  url = ''
  readonly #server: Server
  readonly #byName = new Map<string, Creation[]>()
  readonly #byId = new Map<string, Creation>()
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(latencyMs: number) {
    this.latencyMs = latencyMs
    this.#server = createServer({ keepAlive: true }, (request, response) => {
      const url = new URL(request.url ?? '', 'http://cloud')
      const member = url.searchParams.get('member') ?? ''
      const name = url.searchParams.get('name') ?? ''
      const id = url.searchParams.get('id') ?? ''
      request.resume()
      let answer: object
      if (request.method === 'POST') answer = this.#create(name, member)
      else {
        this.#observe(name || id)
        const found = id ? this.#byId.get(id) : this.#byName.get(name)?.[0]
        answer = { id: found?.id }
      }
      const timer = setTimeout(() => {
        this.#timers.delete(timer)
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      }, this.latencyMs)
      this.#timers.add(timer)
    })
  }

  static async start(latencyMs: number): Promise<CloudServer> {
    const cloud = new CloudServer(latencyMs)
    await new Promise<void>(resolve => cloud.#server.listen(0, '127.0.0.1', resolve))
    cloud.url = `http://127.0.0.1:${(cloud.#server.address() as AddressInfo).port}`
    return cloud
  }

  /** Creations beyond the first of each name. */
  get duplicates(): readonly Creation[] {
    return [...this.#byName.values()].flatMap(creations => creations.slice(1))
  }

  /** From now on the intervals between observations count. */
  forgetIntervals(): void {
    for (const entry of this.observed.values()) entry.longestMs = 0
  }

  /** The longest interval of each name, up to now. @throws {Error} if fewer than `expected` names have been observed. */
  intervalsMs(expected: number): number[] {
    if (this.observed.size < expected) throw new Error(`${this.observed.size} of ${expected} resources have been observed`)
    const nowMs = monotonicMs()
    return [...this.observed.values()].map(({ longestMs, lastMs }) => Math.max(longestMs, nowMs - lastMs))
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    this.#server.closeAllConnections()
    await new Promise(resolve => this.#server.close(resolve))
  }

  #create(name: string, member: string): { id: string } {
    const creation = { name, id: `id-${this.creations.length}`, member, receivedMs: monotonicMs() }
    this.creations.push(creation)
    this.#byId.set(creation.id, creation)
    const all = this.#byName.get(name)
    if (all) all.push(creation)
    else this.#byName.set(name, [creation])
    return { id: creation.id }
  }

  #observe(key: string): void {
    const nowMs = monotonicMs()
    const before = this.observed.get(key)
    if (!before) this.observed.set(key, { lastMs: nowMs, longestMs: 0, count: 1 })
    else Object.assign(before, { lastMs: nowMs, longestMs: Math.max(before.longestMs, nowMs - before.lastMs), count: before.count + 1 })
  }
}
