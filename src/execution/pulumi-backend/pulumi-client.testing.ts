import { type ClientRequest, request } from 'node:http'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { listenPulumi } from './listen.ts'
import { MemoryBackend } from './memory-backend.testing.ts'
import { createPulumiHandler, type PulumiHandler, type PulumiHandlerOptions } from './pulumi-handler.ts'

export const accessToken = 'pul-0123456789abcdef0123456789abcdef'
export const cliUserAgent = 'pulumi-cli/1 (v3.260.0; linux; cmd=up)'

export type TestResponse = { readonly status: number; readonly text: string; readonly json: Record<string, unknown> }

export type CallOptions = {
  readonly body?: unknown
  /** Sent as it is. */
  readonly bytes?: Uint8Array
  readonly gzip?: boolean
  readonly headers?: Record<string, string>
  /** Default: that of the Run. */
  readonly token?: string
  readonly updateToken?: string
}

export type PulumiFixture = {
  readonly backend: MemoryBackend
  readonly handler: PulumiHandler
  readonly url: string
  /** Errors behind 503. */
  readonly errors: unknown[]
  call(method: string, path: string, options?: CallOptions): Promise<TestResponse>
  /** Creates and starts an update of `apps/web/dev`, and calls below its path with its token. */
  start(kind?: string, body?: Record<string, unknown>): Promise<StartedUpdate>
}

export type StartedUpdate = {
  readonly id: string
  readonly path: string
  readonly token: string
  readonly answer: TestResponse
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<TestResponse>
}

export const devPath = '/api/stacks/apps/web/dev'

/** An endpoint on a free port, with the stack `apps/web/dev`. It is closed after the test. */
export async function createPulumiFixture(t: TestContext, options: Partial<PulumiHandlerOptions> = {}): Promise<PulumiFixture> {
  const backend = new MemoryBackend()
  backend.stacks.set('apps/web/dev', { tags: {}, versions: [] })
  const errors: unknown[] = []
  const handler = createPulumiHandler({ backend, accessToken, onError: error => errors.push(error), ...options })
  const endpoint = await listenPulumi(handler)
  t.after(async () => await endpoint.close())
  const call: PulumiFixture['call'] = (method, path, callOptions) => callPulumi(endpoint.url, method, path, callOptions)
  return {
    ...{ backend, handler, errors, url: endpoint.url, call },
    start: async (kind = 'update', body = {}) => {
      const created = await call('POST', `${devPath}/${kind}`, { body: { name: 'web', runtime: 'yaml', ...body } })
      const id = String(created.json.updateID)
      const path = `${devPath}/update/${id}`
      const answer = await call('POST', path, { body: { tags: { 'pulumi:runtime': 'yaml' }, journalVersion: 1 } })
      const token = String(answer.json.token)
      return {
        ...{ id, path, token, answer },
        call: (method, rest, value, more) => call(method, `${path}/${rest}`, { body: value, updateToken: token, gzip: true, ...more }),
      }
    },
  }
}

/** One request over a connection of its own. */
export async function callPulumi(url: string, method: string, path: string, options: CallOptions = {}): Promise<TestResponse> {
  const { body, bytes, gzip = false, headers = {}, token = accessToken, updateToken } = options
  const plain = bytes ?? (body === undefined ? undefined : Buffer.from(JSON.stringify(body)))
  const payload = plain && gzip ? gzipSync(plain) : plain
  return await new Promise((resolve, reject) => {
    const sent: ClientRequest = request(`${url}${path}`, {
      ...{ method, agent: false },
      headers: {
        ...{ 'user-agent': cliUserAgent, accept: 'application/vnd.pulumi+9' },
        authorization: updateToken === undefined ? `token ${token}` : `update-token ${updateToken}`,
        ...(payload && { 'content-type': 'application/json', 'content-length': String(payload.byteLength) }),
        ...(gzip && { 'content-encoding': 'gzip' }),
        ...headers,
      },
    })
    sent.once('error', reject)
    sent.once('response', async response => {
      const chunks: Buffer[] = []
      for await (const chunk of response) chunks.push(chunk)
      const text = Buffer.concat(chunks).toString()
      resolve({ status: response.statusCode ?? 0, text, json: text.startsWith('{') ? JSON.parse(text) : {} })
    })
    sent.end(payload)
  })
}
