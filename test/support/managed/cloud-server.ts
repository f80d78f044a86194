/** An external system behind HTTP that accepts duplicates and counts them. `POST /things` makes another thing, whatever its name; `GET` looks by name or id. */
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { monotonicMs } from './monotonic-ms.ts'

/** One creation, in the order of arrival. */
export type Creation = {
  readonly name: string
  readonly id: string
  /** The replica that asked for it. */
  readonly member: string
  /** When that replica began its call, by the clock that all processes share. */
  readonly begunMs: number
  readonly receivedMs: number
  /** When that replica had last observed this name; undefined if never. */
  readonly observedMs: number | undefined
}

export class CloudServer {
  readonly creations: Creation[] = []
  /** Creations that are not answered yet. */
  readonly inFlight = new Set<Creation>()
  /** Time of the observations of each name: the last, and the longest between two. */
  readonly observed = new Map<string, { lastMs: number; longestMs: number; foundCount: number }>()
  /** How long each call takes. */
  latencyMs: number
  url = ''
  readonly #server: Server
  readonly #created = new EventEmitter()
  readonly #byName = new Map<string, Creation[]>()
  readonly #byId = new Map<string, Creation>()
  /** By member and name. */
  readonly #observedBy = new Map<string, number>()
  readonly #timers = new Set<NodeJS.Timeout>()

  constructor(latencyMs: number) {
    this.latencyMs = latencyMs
    this.#server = createServer({ keepAlive: true }, (request, response) => void this.#answer(request, response))
  }

  static async start(latencyMs: number): Promise<CloudServer> {
    const cloud = new CloudServer(latencyMs)
    await new Promise<void>(resolve => cloud.#server.listen(0, '127.0.0.1', resolve))
    cloud.url = `http://127.0.0.1:${(cloud.#server.address() as AddressInfo).port}`
    return cloud
  }

  /** Creations by their name. */
  get things(): ReadonlyMap<string, readonly Creation[]> {
    return this.#byName
  }

  /** Creations beyond the first of each name. */
  get duplicates(): readonly Creation[] {
    return [...this.#byName.values()].flatMap(creations => creations.slice(1))
  }

  /** The next creation that arrives after `count` others; it is in flight when this resolves. */
  async nextCreation(count: number): Promise<Creation> {
    const signal = AbortSignal.timeout(60_000)
    for (;;) {
      const [creation] = (await once(this.#created, 'creation', { signal })) as [Creation]
      if (this.creations.length > count) return creation
    }
  }

  /** How often the thing of a name has been found since `forgetFound`. */
  foundCountOf(name: string): number {
    return this.observed.get(name)?.foundCount ?? 0
  }

  forgetFound(): void {
    for (const entry of this.observed.values()) entry.foundCount = 0
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

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const query = new URL(request.url ?? '', 'http://cloud').searchParams
    const [member, name, id] = ['member', 'name', 'id'].map(field => query.get(field) ?? '') as [string, string, string]
    let answer: object
    if (request.method === 'POST') {
      const body = await json(request).catch(() => undefined)
      // The caller was killed while it sent.
      if (!body) return
      const creation = this.#create(name, member, (body as { begunMs: number }).begunMs)
      response.once('close', () => this.inFlight.delete(creation))
      this.#created.emit('creation', creation)
      answer = { id: creation.id }
    } else {
      request.resume()
      const found = id ? this.#byId.get(id) : this.#byName.get(name)?.[0]
      this.#observe(found?.name ?? name, member, found !== undefined)
      answer = { id: found?.id, name: found?.name }
    }
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    }, this.latencyMs)
    this.#timers.add(timer)
  }

  #create(name: string, member: string, begunMs: number): Creation {
    const observedMs = this.#observedBy.get(`${member} ${name}`)
    const creation = { name, id: `id-${this.creations.length}`, member, begunMs, receivedMs: monotonicMs(), observedMs }
    this.creations.push(creation)
    this.inFlight.add(creation)
    this.#byId.set(creation.id, creation)
    const all = this.#byName.get(name)
    if (all) all.push(creation)
    else this.#byName.set(name, [creation])
    return creation
  }

  #observe(name: string, member: string, isFound: boolean): void {
    const nowMs = monotonicMs()
    this.#observedBy.set(`${member} ${name}`, nowMs)
    const before = this.observed.get(name)
    const { lastMs, longestMs, foundCount } = before ?? { lastMs: nowMs, longestMs: 0, foundCount: 0 }
    this.observed.set(name, {
      lastMs: nowMs,
      longestMs: Math.max(longestMs, nowMs - lastMs),
      foundCount: foundCount + (isFound ? 1 : 0),
    })
  }
}
