import type { ServerResponse } from 'node:http'
import { respondJson, respondStatus, type ScriptedRequest, type ScriptedServer, startScriptedServer } from './scripted-server.ts'

type StoredObject = {
  apiVersion?: string
  kind?: string
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string; generation: number; [field: string]: unknown }
  [field: string]: unknown
}
type LoggedEvent = { version: number; type: string; path: string; object: StoredObject }
type Watcher = { collection: string; response: ServerResponse }

/**
 * A minimal API server to test list+watch, informers and leases against, with faults on demand. It keeps everything in
 * memory and supports whole collections only; `client-server.test.ts` covers the embedded server.
 */
export class InMemoryApi {
  readonly server: ScriptedServer
  readonly #objects = new Map<string, StoredObject>()
  readonly #watchers = new Set<Watcher>()
  readonly #log: LoggedEvent[] = []
  #version = 100
  #oldest = 100
  /** Called before each request; returns true if it has responded. */
  intercept: ((request: ScriptedRequest, response: ServerResponse) => boolean) | undefined

  private constructor(server: ScriptedServer) {
    this.server = server
  }

  static async start(): Promise<InMemoryApi> {
    const server = await startScriptedServer(() => undefined)
    const api = new InMemoryApi(server)
    server.setHandler((request, response) => api.#handle(request, response))
    return api
  }

  get version(): string {
    return String(this.#version)
  }

  get watchers(): number {
    return this.#watchers.size
  }

  /** Stores an object under its full path, such as `/api/v1/namespaces/a/configmaps/x`, and notifies the watchers. */
  put(path: string, fields: { metadata?: object; [field: string]: unknown } = {}): StoredObject {
    const old = this.#objects.get(path)
    const name = path.slice(path.lastIndexOf('/') + 1)
    const namespace = /\/namespaces\/([^/]+)\/[^/]+\/[^/]+$/.exec(path)?.[1]
    const version = ++this.#version
    const metadata = {
      creationTimestamp: '2026-01-01T00:00:00Z',
      generation: 1,
      uid: `u${version}`,
      ...old?.metadata,
      ...fields.metadata,
      name,
      namespace,
      resourceVersion: `${version}`,
    }
    const object: StoredObject = { ...fields, metadata }
    this.#objects.set(path, object)
    this.#notify({ version, type: old ? 'MODIFIED' : 'ADDED', path, object })
    return object
  }

  remove(path: string): void {
    const old = this.#objects.get(path)
    if (!old) return
    this.#objects.delete(path)
    const version = ++this.#version
    this.#notify({ version, type: 'DELETED', path, object: { ...old, metadata: { ...old.metadata, resourceVersion: `${version}` } } })
  }

  /** The objects of a collection by name. */
  list(collection: string): StoredObject[] {
    const stored = [...this.#objects].filter(([path]) => isInCollection(collection, path))
    return stored.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  /** Discards the event history: watches from earlier versions receive 410. */
  compact(): void {
    this.#oldest = this.#version
    this.#log.length = 0
  }

  /** Sends raw bytes to every watcher. */
  sendRaw(text: string): void {
    for (const { response } of this.#watchers) response.write(text)
  }

  /**
   * Sends up to `count` earlier events again, excluding the newest `skipped` ones: as a server whose replica lags, or an old
   * connection that ends late.
   */
  resendEvents(count: number, skipped: number): void {
    const stale = this.#log.slice(0, Math.max(0, this.#log.length - skipped)).slice(-count)
    for (const event of stale) {
      for (const { collection, response } of this.#watchers) if (isInCollection(collection, event.path)) response.write(line(event))
    }
  }

  bookmark(): void {
    this.sendRaw(`${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'x', metadata: { resourceVersion: this.version } } })}\n`)
  }

  /** Destroys the connection of every running watch, possibly within an event. */
  breakWatches(): void {
    for (const { response } of this.#watchers) response.socket?.destroy()
    this.#watchers.clear()
  }

  /** Leaves every running watch open, but sends nothing more to it. */
  forgetWatchers(): void {
    this.#watchers.clear()
  }

  /** Ends every running watch normally. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end()
    this.#watchers.clear()
  }

  async close(): Promise<void> {
    await this.server.close()
  }

  #notify(event: LoggedEvent): void {
    this.#log.push(event)
    for (const { collection, response } of this.#watchers) if (isInCollection(collection, event.path)) response.write(line(event))
  }

  #handle(request: ScriptedRequest, response: ServerResponse): void {
    if (this.intercept?.(request, response)) return
    if (request.method === 'GET' && request.query.get('watch') === 'true') this.#watch(request.path, request.query, response)
    else this.#respond(request, response)
  }

  #respond({ method, path, body }: ScriptedRequest, response: ServerResponse): void {
    const key = path.replace(/\/status$/, '')
    const stored = this.#objects.get(key)
    const sent = body === '' ? {} : JSON.parse(body)
    const expected = sent.metadata?.resourceVersion
    if (method === 'GET' && /\/(configmaps|leases|stacks|runs|events|secrets|workers|workerpools)$/.test(path)) {
      respondJson(response, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: this.version }, items: this.list(path) })
    } else if (method === 'POST') {
      const target = `${path}/${sent.metadata.name}`
      if (this.#objects.has(target)) respondStatus(response, 409, 'AlreadyExists')
      else respondJson(response, this.put(target, sent), 201)
    } else if (!stored) {
      respondStatus(response, 404, 'NotFound')
    } else if (method !== 'DELETE' && expected && expected !== stored.metadata.resourceVersion) {
      respondStatus(response, 409, 'Conflict')
    } else if (method === 'PUT') {
      respondJson(response, this.put(key, sent))
    } else if (method === 'PATCH') {
      respondJson(response, this.put(key, { ...stored, ...sent }))
    } else if (method === 'DELETE') {
      this.remove(key)
      respondJson(response, { kind: 'Status', status: 'Success' })
    } else {
      respondJson(response, stored)
    }
  }

  #watch(collection: string, query: URLSearchParams, response: ServerResponse): void {
    const from = Number(query.get('resourceVersion') ?? '0')
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (from < this.#oldest) {
      const object = {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        reason: 'Expired',
        message: 'too old resource version',
        code: 410,
      }
      response.end(`${JSON.stringify({ type: 'ERROR', object })}\n`)
      return
    }
    for (const event of this.#log) if (event.version > from && isInCollection(collection, event.path)) response.write(line(event))
    const watcher = { collection, response }
    this.#watchers.add(watcher)
    response.on('close', () => this.#watchers.delete(watcher))
  }
}

const line = ({ type, object }: LoggedEvent) => `${JSON.stringify({ type, object })}\n`

/** Whether the path of an object belongs to a collection, possibly of all namespaces. */
function isInCollection(collection: string, path: string): boolean {
  if (path.startsWith(`${collection}/`)) return true
  const plural = collection.slice(collection.lastIndexOf('/') + 1)
  const root = collection.slice(0, -plural.length)
  return path.startsWith(`${root}namespaces/`) && path.split('/').at(-2) === plural && !collection.includes('/namespaces/')
}
