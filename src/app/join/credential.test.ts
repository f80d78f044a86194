import { deepEqual, equal } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { Credential } from './credential.ts'

type Answer = { code: number; body: object } | 'disconnect'

/** A server on a Unix socket that answers renewals in this order, and then as the last time. */
async function startServer(t: TestContext, answers: Answer[]) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-renew-'))
  const received: string[] = []
  const server = createServer((request, response) => {
    received.push(`${request.method} ${request.url} ${request.headers.authorization}`)
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!
    if (answer === 'disconnect') request.socket.destroy()
    else response.writeHead(answer.code, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer.body))
  })
  await new Promise<void>(resolve => server.listen(join(directory, 'api.sock'), resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
    rmSync(directory, { recursive: true, force: true })
  })
  return { url: `unix://${directory}/api.sock`, received }
}

const renewed = (credential: string) => ({ code: 200, body: { worker: 'w1', pool: 'default', labels: {}, credential, ttlMs: 3_600_000 } })

function startCredential(t: TestContext, server: string) {
  const errors: string[] = []
  const response = { credential: 'first', ttlMs: 600 }
  const onError = (error: Error) => void errors.push(error.message.replace(/unix:\S+?api\.sock/, 'the server'))
  const credential = new Credential({ server, caCertificate: undefined, response, onError })
  t.after(() => credential.stop())
  return { credential, errors }
}

test('a renewal is retried while the server disconnects, is starting, or has too many requests', async t => {
  const unavailable = [503, 429].map(code => ({ code, body: { message: 'try again' } }))
  const { url, received } = await startServer(t, ['disconnect', ...unavailable, renewed('second')])
  const { credential, errors } = startCredential(t, url)
  equal(credential.get(), 'first')
  await eventually(() => credential.get() === 'second', 'the credential to be renewed')
  deepEqual(new Set(received), new Set(['POST /join/renew Bearer first']))
  deepEqual(errors, [
    'failed to reach the server: socket hang up',
    'the server returned 503: try again',
    'the server returned 429: try again',
  ])
})

test('a credential that the server rejects is not sent again', async t => {
  const rejecting = await startServer(t, [{ code: 401, body: { message: 'revoked' } }])
  const { errors } = startCredential(t, rejecting.url)
  await eventually(() => errors.length > 0, 'the rejection to be reported')
  // Another one that was retried twice since shows that a retry would have been sent.
  const unavailable = await startServer(t, [{ code: 503, body: { message: 'try again' } }])
  startCredential(t, unavailable.url)
  await eventually(() => unavailable.received.length === 3, 'two retries')
  equal(rejecting.received.length, 1)
})
