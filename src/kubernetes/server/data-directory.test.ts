import { deepEqual, equal, rejects } from 'node:assert/strict'
import fs, { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startServer } from './index.ts'
import { makeDataDir } from './server.testing.ts'
import { ServerStartError } from './storage/index.ts'

/** Writes of texts that match `pattern` fail half-way as on a full disk. */
function fillDisk(t: TestContext, pattern: RegExp): void {
  const write = fs.writeFileSync
  const mocked = t.mock.method(fs, 'writeFileSync', (file: number, text: string) => {
    if (!pattern.test(text)) return write(file, text)
    write(file, text.slice(0, text.length / 2))
    throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', syscall: 'write' })
  })
  syncBuiltinESMExports()
  t.after(() => {
    mocked.mock.restore()
    syncBuiltinESMExports()
  })
}

test('a start that cannot write its new certificate fails with DiskFull, keeps the old one, and leaves no temporary file', async t => {
  const dataDir = makeDataDir()
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const options = { dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } } as const
  await (await startServer(options)).close()
  const files = () => readdirSync(join(dataDir, 'pki')).map(name => [name, readFileSync(join(dataDir, 'pki', name), 'utf8')])
  const before = files()
  fillDisk(t, /BEGIN PRIVATE KEY/)
  const upgraded = { ...options, tlsNames: ['new.example'] }
  await rejects(startServer(upgraded), (error: unknown) => error instanceof ServerStartError && error.code === 'DiskFull')
  deepEqual(files(), before)
})

test('a certificate authority that cannot be parsed is not reported as a directory that cannot be written', async t => {
  const dataDir = makeDataDir()
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const options = { dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } } as const
  await (await startServer(options)).close()
  writeFileSync(join(dataDir, 'pki', 'ca.key'), 'no key')
  const error = { code: 'DataCorrupt', message: /ca\.key is not a PEM key: restore it from a backup/ }
  await rejects(startServer({ ...options, tlsNames: ['new.example'] }), error)
})

test('removes the access of other users from its data directory', async t => {
  const dataDir = makeDataDir()
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  chmodSync(dataDir, 0o777)
  await (await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })).close()
  equal(statSync(dataDir).mode & 0o777, 0o700)
})
