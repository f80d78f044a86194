import { equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../../test/support/make-certificate.ts'
import { fetchWithCa } from './fetch-with-ca.ts'

const maxBytes = 4 * 1024 * 1024

test('an answer of 4 MiB is read, and the connection of a larger one is closed', { timeout: 30_000 }, async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-fetch-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const { key, cert } = makeCertificate(directory)
  const closed = Promise.withResolvers<void>()
  const server = createServer({ key, cert }, ({ url }, response) => {
    if (url === '/allowed') return void response.end(Buffer.alloc(maxBytes))
    // It does not end: without a limit the answer would be read until the memory is full.
    response.once('close', closed.resolve)
    response.write(Buffer.alloc(maxBytes + 1))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const host = `localhost:${(server.address() as AddressInfo).port}`
  const get = (path: string) => fetchWithCa(cert)(`https://${host}${path}`, { method: 'GET', headers: {} })
  equal((await (await get('/allowed')).arrayBuffer()).byteLength, maxBytes)
  await rejects(get('/larger'), { message: `the answer of ${host} is larger than ${maxBytes} bytes` })
  await closed.promise
})
