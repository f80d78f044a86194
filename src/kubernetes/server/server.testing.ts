import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Agent, fetch } from 'undici'
import type { KubeObject, Status, WatchEvent } from '../object/index.ts'
import { type ApiServer, type ServerOptions, startServer } from './index.ts'

// For the tests of this module only: a real server on port 0 and a minimal client for arbitrary requests.

export type Answer<T = KubeObject & Status & { items: KubeObject[] }> = { code: number; headers: Headers; body: T }
export type RequestOptions = { method?: string; body?: unknown; type?: string; headers?: Record<string, string>; token?: string | null }

export type TestServer = {
  server: ApiServer
  dataDir: string
  agent: Agent
  adminToken: string
  call<T = Answer['body']>(path: string, options?: RequestOptions): Promise<Answer<T>>
  /** Opens a watch and reads its events one by one; `stop` ends it. */
  watch(path: string, token?: string): Promise<{ next(): Promise<WatchEvent | undefined>; stop(): void }>
  close(): Promise<void>
}

export function makeDataDir(): string {
  return mkdtempSync(join(tmpdir(), 'oarlock-server-'))
}

export async function startTestServer(options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? makeDataDir()
  // Namespaces are empty unless a test enables their defaults.
  const server = await startServer({ listen: { port: 0 }, storage: { synchronous: 'OFF' }, namespaceDefaults: false, ...options, dataDir })
  const agent = new Agent({ connect: { ca: server.caCertificate }, headersTimeout: 10_000, bodyTimeout: 0 })
  const { adminToken } = server
  const headersOf = ({ token = adminToken, type, body, headers }: RequestOptions) => ({
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'content-type': type ?? 'application/json' }),
    'user-agent': 'tester/1.0',
    ...headers,
  })
  return {
    server,
    dataDir,
    agent,
    adminToken,
    async call<T>(path: string, request: RequestOptions = {}) {
      const { method = request.body === undefined ? 'GET' : 'POST', body } = request
      const text = body === undefined || typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
      const response = await fetch(server.url + path, { method, headers: headersOf(request), body: text, dispatcher: agent })
      const answer = await response.text()
      const isJson = response.headers.get('content-type')?.startsWith('application/json') && answer !== ''
      return { code: response.status, headers: response.headers as unknown as Headers, body: (isJson ? JSON.parse(answer) : answer) as T }
    },
    async watch(path: string, token?: string) {
      const abort = new AbortController()
      const response = await fetch(server.url + path, { headers: headersOf({ token }), dispatcher: agent, signal: abort.signal })
      if (response.status !== 200) throw new Error(`the watch failed with ${response.status}: ${await response.text()}`)
      // Reading starts now: undici cancels the unread body of a garbage-collected Response, which would end the watch.
      const lines = readLines((response.body as ReadableStream<Uint8Array>).values())
      return {
        async next() {
          const { value, done } = await lines.next()
          return done ? undefined : (JSON.parse(value) as WatchEvent)
        },
        stop: () => abort.abort(),
      }
    },
    async close() {
      await agent.destroy()
      await server.close({ graceMs: 500 })
      if (!options.dataDir) rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

export async function* readLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest = ''
  const decoder = new TextDecoder()
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}

/** The path of the ConfigMaps of a namespace, or of one of them. */
export const configMapsPath = (namespace: string, name = '') => `/api/v1/namespaces/${namespace}/configmaps${name && `/${name}`}`

export const configMap = (name: string, data: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...metadata },
  data,
})

export async function createNamespace({ call }: TestServer, name: string): Promise<string> {
  const { code } = await call('/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } })
  assert.equal(code, 201)
  return name
}

/** Waits until an object is deleted in the background. */
export async function untilNotFound({ call }: TestServer, path: string): Promise<void> {
  for (const deadlineMs = Date.now() + 5_000; Date.now() < deadlineMs; ) {
    if ((await call(path)).code === 404) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.fail(`${path} still exists`)
}
