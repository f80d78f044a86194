/** What one tenant sends does not keep another tenant's state from being stored. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { RequestLimiter } from '../http/index.ts'
import { type StateServer, withStateServer } from './state-server.testing.ts'

const service = { concurrent: 8, concurrentPerClient: 2, waitingPerClient: 1, waiting: 8 }
/** Each Stack has its own token, which is its name. */
const authorize = async ({ stack, basicPassword }: { stack: string; basicPassword?: string }) =>
  basicPassword === stack
    ? { allowed: true as const, stackUid: stack, access: 'user' as const }
    : { allowed: false as const, code: 403 as const, message: 'the token is not of this stack' }

/** Begins to send a state. */
async function beginUpload({ port }: StateServer, stack: string, bytes: number, sent: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  await once(socket, 'connect')
  const credential = Buffer.from(`any:${stack}`).toString('base64')
  socket.write(`POST /state/apps/${stack} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${credential}\r\nContent-Length: ${bytes}\r\n\r\n`)
  socket.write(' '.repeat(sent))
  return socket
}

const upload = async ({ url }: StateServer, stack: string, bytes = 2) =>
  await fetch(`${url}/state/apps/${stack}`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(`any:${stack}`).toString('base64')}` },
    body: `{${' '.repeat(bytes - 2)}}`,
  })

test('slow uploads of one Stack wait for each other, further ones get 429, and another Stack is served', () =>
  withStateServer(
    async server => {
      const slow = [
        await beginUpload(server, 'one', 10, 1),
        await beginUpload(server, 'one', 10, 1),
        await beginUpload(server, 'one', 10, 1),
      ]
      await eventually(async () => (await upload(server, 'one')).status === 429, 'the Stack to have as many as it may')
      equal((await upload(server, 'one')).headers.get('retry-after'), '1')
      for (let i = 0; i < 20; i++) equal((await upload(server, 'two')).status, 200)
      for (const socket of slow) socket.destroy()
      await eventually(async () => (await upload(server, 'one')).status === 200, 'the places to be free again')
    },
    { handler: { authorize, limiter: new RequestLimiter({ service }) } },
  ))

test('incomplete bodies of one Stack use at most a quarter of the memory: another Stack can store its state', () =>
  withStateServer(
    async server => {
      const slow = [await beginUpload(server, 'one', 1_000, 600), await beginUpload(server, 'one', 1_000, 600)]
      const [response] = (await Promise.race(slow.map(socket => once(socket, 'data')))) as [Buffer]
      match(response.toString(), /^HTTP\/1\.1 503 [\s\S]*Overloaded/)
      equal((await upload(server, 'two', 1_000)).status, 200)
      for (const socket of slow) socket.destroy()
      await eventually(async () => (await upload(server, 'one', 1_000)).status === 200, 'the memory to be free again')
    },
    { limits: { maxBytes: 1_000, pendingBytes: 4_000 }, handler: { authorize } },
  ))

test('requests whose Stack is being decided on wait per address, and do not keep users waiting', () => {
  const [isAsked, mayDecide] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const authorization = { concurrent: 2, concurrentPerClient: 1, waitingPerClient: 1, waiting: 8 }
  return withStateServer(
    async server => {
      const statusOf = async (user?: string) =>
        (await fetch(`${server.url}/state/apps/one`, { headers: user === undefined ? {} : { 'x-user': user } })).status
      const first = statusOf()
      await isAsked.promise
      const others = [statusOf(), statusOf()]
      equal(await Promise.race(others), 429)
      equal(await statusOf('ada'), 204)
      mayDecide.resolve()
      deepEqual([await first, ...(await Promise.all(others)).toSorted()], [401, 401, 429])
    },
    {
      handler: {
        limiter: new RequestLimiter({ authorization }),
        authorize: async ({ user }) => {
          if (user) return { allowed: true, stackUid: 'one', access: 'user' }
          isAsked.resolve()
          await mayDecide.promise
          return { allowed: false, code: 401, message: 'no token' }
        },
      },
    },
  )
})
