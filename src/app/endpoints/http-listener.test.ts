import { equal } from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { type HttpListener, startHttpListener } from './http-listener.ts'

let listener: HttpListener

before(async () => {
  listener = await startHttpListener({
    address: { host: '127.0.0.1', port: 0 },
    adminToken: 'secret',
    mounts: [],
    health: { livez: () => [], readyz: () => [] },
    metrics: async () => ({ contentType: 'text/plain', text: 'metrics' }),
    queue: () => ({ status: 200, body: {} }),
    page: () => 'page',
    onError: error => {
      throw error
    },
  })
})
after(() => listener?.close())

const statusOf = (host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const { port } = listener.address
    request({ host: '127.0.0.1', port, path: '/queue', headers: { host } }, response => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })

for (const host of ['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.9.9.9'])
  test(`a request for host ${host} is answered`, async () => equal(await statusOf(`${host}:7468`), 200))

// A page of that name can make it resolve to this address, and its script could read the queue.
for (const host of ['127.0.0.1.evil.example', '127.evil.example', 'localhost.evil.example', 'evil.example', '10.0.0.1'])
  test(`a request for host ${host} is rejected`, async () => equal(await statusOf(`${host}:7468`), 421))
