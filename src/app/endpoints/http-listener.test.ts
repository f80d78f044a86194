import { equal } from 'node:assert/strict'
import { type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http'
import { after, before, test } from 'node:test'
import { type HttpListener, startHttpListener } from './http-listener.ts'

let listener: HttpListener

before(async () => {
  listener = await startHttpListener({
    address: { host: '127.0.0.1', port: 0 },
    statusToken: 'status-secret',
    adminToken: 'admin-secret',
    mounts: [],
    health: { livez: () => [], readyz: () => [] },
    metrics: async () => ({ contentType: 'text/plain', text: 'metrics' }),
    queue: () => ({ status: 200, body: {} }),
    console: async (_path, _request, response) => void response.end('page'),
    onError: error => {
      throw error
    },
  })
})
after(() => listener?.close())

type Answer = { readonly status: number | undefined; readonly headers: IncomingHttpHeaders; readonly text: string }

const get = (path: string, headers: OutgoingHttpHeaders): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { port } = listener.address
    request({ host: '127.0.0.1', port, path, headers }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
    })
      .on('error', reject)
      .end()
  })
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const basic = (password: string) => ({ authorization: `Basic ${Buffer.from(`any:${password}`).toString('base64')}` })
const statusOf = async (host: string) => (await get('/queue', { host, ...bearer('status-secret') })).status

for (const [name, headers, status] of [
  ['no credential', {}, 401],
  ['the status token', bearer('status-secret'), 200],
  ['the status token as password', basic('status-secret'), 200],
  ['the admin token', bearer('admin-secret'), 200],
  ['another token', bearer('status-secre'), 401],
  ['an empty token', bearer(''), 401],
  ['a scheme that is not known', { authorization: 'Digest status-secret' }, 401],
] as const)
  test(`metrics and queue with ${name}: ${status}`, async () => {
    for (const path of ['/metrics', '/queue']) equal((await get(path, headers)).status, status, path)
  })

test('health is served without a credential', async () => {
  for (const path of ['/livez', '/healthz', '/readyz']) equal((await get(path, {})).status, 200, path)
})

test('/ leads to the console', async () => {
  const { status, headers } = await get('/', {})
  equal(status, 302)
  equal(headers.location, '/console/')
  equal((await get('/console/', {})).text, 'page')
})

for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.9.9.9'])
  test(`a request for host ${host} is answered`, async () => equal(await statusOf(`${host}:7468`), 200))

// A page of that name can make it resolve to this address, and its script could read the queue.
for (const host of ['127.0.0.1.evil.example', '127.evil.example', 'localhost.evil.example', 'evil.example', '10.0.0.1'])
  test(`a request for host ${host} is rejected`, async () => equal(await statusOf(`${host}:7468`), 421))
