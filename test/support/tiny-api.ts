import type { ServerResponse } from 'node:http'
import { answerJson, answerStatus, type ScriptedRequest, type ScriptedServer, startScriptedServer } from './scripted-server.ts'

type Stored = {
  apiVersion?: string
  kind?: string
  metadata: { name: string; namespace?: string; uid: string; resourceVersion: string; generation: number; [field: string]: unknown }
  [field: string]: unknown
}
type Logged = { version: number; type: string; path: string; object: Stored }
type Watcher = { collection: string; response: ServerResponse }

/**
 * The least API server that list+watch, informers and leases can be tried against, with its faults at hand. It keeps
 * everything in memory and knows only whole collections; the embedded server is tried in `client-server.test.ts`.
 */
export class TinyApi {
  readonly server: ScriptedServer
  readonly #objects = new Map<string, Stored>()
  readonly #watchers = new Set<Watcher>()
  readonly #log: Logged[] = []
  #version = 100
  #oldest = 100
  /** Called before each request; return true if it answered by itself. */
  intercept: ((request: ScriptedRequest, response: ServerResponse) => boolean) | undefined

  private constructor(server: ScriptedServer) {
    this.server = server
  }

  static async start(): Promise<TinyApi> {
    const server = await startScriptedServer(() => undefined)
    const api = new TinyApi(server)
    server.setScript((request, response) => api.#handle(request, response))
    return api
  }

  get version(): string {
    return String(this.#version)
  }

  get watchers(): number {
    return this.#watchers.size
  }

  /** Stores an object under its full path, such as `/api/v1/namespaces/a/configmaps/x`, and tells the watchers. */
  put(path: string, fields: { metadata?: object; [field: string]: unknown } = {}): Stored {
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
    const object: Stored = { ...fields, metadata }
    this.#objects.set(path, object)
    this.#tell({ version, type: old ? 'MODIFIED' : 'ADDED', path, object })
    return object
  }

  remove(path: string): void {
    const old = this.#objects.get(path)
    if (!old) return
    this.#objects.delete(path)
    const version = ++this.#version
    this.#tell({ version, type: 'DELETED', path, object: { ...old, metadata: { ...old.metadata, resourceVersion: `${version}` } } })
  }

  /** The objects of a collection by name. */
  list(collection: string): Stored[] {
    const stored = [...this.#objects].filter(([path]) => inside(collection, path))
    return stored.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object)
  }

  /** Forgets the history: watches from before get 410. */
  compact(): void {
    this.#oldest = this.#version
    this.#log.length = 0
  }

  /** Sends bytes to every watcher as they are. */
  sendRaw(text: string): void {
    for (const { response } of this.#watchers) response.write(text)
  }

  /**
   * Sends events from before again, as a server does behind which another one lags, or an old connection that ends last: up to
   * `count` of them, of those older than the newest `skipped` ones.
   */
  sendLate(count: number, skipped: number): void {
    const late = this.#log.slice(0, Math.max(0, this.#log.length - skipped)).slice(-count)
    for (const event of late) {
      for (const { collection, response } of this.#watchers) if (inside(collection, event.path)) response.write(line(event))
    }
  }

  bookmark(): void {
    this.sendRaw(`${JSON.stringify({ type: 'BOOKMARK', object: { kind: 'x', metadata: { resourceVersion: this.version } } })}\n`)
  }

  /** Breaks every running watch in the middle of whatever it was sending. */
  cut(): void {
    for (const { response } of this.#watchers) response.socket?.destroy()
    this.#watchers.clear()
  }

  /** Leaves every running watch open, and never sends anything to it again. */
  forgetWatchers(): void {
    this.#watchers.clear()
  }

  /** Ends every running watch in good order. */
  endWatches(): void {
    for (const { response } of this.#watchers) response.end()
    this.#watchers.clear()
  }

  async close(): Promise<void> {
    await this.server.close()
  }

  #tell(event: Logged): void {
    this.#log.push(event)
    for (const { collection, response } of this.#watchers) if (inside(collection, event.path)) response.write(line(event))
  }

  #handle(request: ScriptedRequest, response: ServerResponse): void {
    if (this.intercept?.(request, response)) return
    if (request.method === 'GET' && request.query.get('watch') === 'true') this.#watch(request.path, request.query, response)
    else this.#answer(request, response)
  }

  #answer({ method, path, body }: ScriptedRequest, response: ServerResponse): void {
    const key = path.replace(/\/status$/, '')
    const stored = this.#objects.get(key)
    const sent = body === '' ? {} : JSON.parse(body)
    const expected = sent.metadata?.resourceVersion
    if (method === 'GET' && /\/(configmaps|leases|stacks|events|secrets)$/.test(path)) {
      answerJson(response, { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion: this.version }, items: this.list(path) })
    } else if (method === 'POST') {
      const target = `${path}/${sent.metadata.name}`
      if (this.#objects.has(target)) answerStatus(response, 409, 'AlreadyExists')
      else answerJson(response, this.put(target, sent), 201)
    } else if (!stored) {
      answerStatus(response, 404, 'NotFound')
    } else if (method !== 'DELETE' && expected && expected !== stored.metadata.resourceVersion) {
      answerStatus(response, 409, 'Conflict')
    } else if (method === 'PUT') {
      answerJson(response, this.put(key, sent))
    } else if (method === 'PATCH') {
      answerJson(response, this.put(key, { ...stored, ...sent }))
    } else if (method === 'DELETE') {
      this.remove(key)
      answerJson(response, { kind: 'Status', status: 'Success' })
    } else {
      answerJson(response, stored)
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
    for (const event of this.#log) if (event.version > from && inside(collection, event.path)) response.write(line(event))
    const watcher = { collection, response }
    this.#watchers.add(watcher)
    response.on('close', () => this.#watchers.delete(watcher))
  }
}

const line = ({ type, object }: Logged) => `${JSON.stringify({ type, object })}\n`

/** Whether an object's path belongs to a collection, which may be that of all namespaces. */
function inside(collection: string, path: string): boolean {
  if (path.startsWith(`${collection}/`)) return true
  const plural = collection.slice(collection.lastIndexOf('/') + 1)
  const root = collection.slice(0, -plural.length)
  return path.startsWith(`${root}namespaces/`) && path.split('/').at(-2) === plural && !collection.includes('/namespaces/')
}
