import { deepEqual, equal, notEqual, rejects, throws } from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueClientCertificate, readCertificates, SigningKey } from './index.ts'

async function withPki(work: (pkiDir: string, path: (name: string) => string) => Promise<void>): Promise<void> {
  const pkiDir = mkdtempSync(join(tmpdir(), 'oarlock-pki-'))
  try {
    await readCertificates(pkiDir, '127.0.0.1', Date.now())
    await work(pkiDir, name => join(pkiDir, name))
  } finally {
    rmSync(pkiDir, { recursive: true, force: true })
  }
}

const damages: Record<string, (path: string) => void> = {
  empty: path => truncateSync(path, 0),
  truncated: path => truncateSync(path, 60),
}

for (const name of ['ca.crt', 'ca.key'])
  for (const [what, damage] of Object.entries(damages))
    test(`rejects ${what} ${name} of the certificate authority, names the file, and changes nothing`, () =>
      withPki(async (pkiDir, path) => {
        damage(path(name))
        const files = ['ca.crt', 'ca.key', 'serving.crt', 'serving.key']
        const before = files.map(file => readFileSync(path(file), 'utf8'))
        const error = {
          name: 'ServerStartError',
          code: 'DataCorrupt',
          message: new RegExp(`^${path(name)} is not a PEM .*: restore it from a backup`),
        }
        await rejects(readCertificates(pkiDir, '127.0.0.1', Date.now()), error)
        await rejects(issueClientCertificate(pkiDir, { name: 'a', groups: [], ttlMs: 60_000 }, Date.now()), error)
        deepEqual(
          files.map(file => readFileSync(path(file), 'utf8')),
          before,
        )
      }))

test('rejects a certificate authority without its key, or with that of another one', () =>
  withPki(async (pkiDir, path) => {
    writeFileSync(path('ca.key'), readFileSync(path('serving.key')))
    await rejects(readCertificates(pkiDir, '127.0.0.1', Date.now()), { message: /ca\.key is not the key of .*ca\.crt/ })
    rmSync(path('ca.key'))
    await rejects(readCertificates(pkiDir, '127.0.0.1', Date.now()), { message: /ca\.key is missing/ })
  }))

test('a first start that was interrupted after the key of the authority is completed', () =>
  withPki(async (pkiDir, path) => {
    for (const name of ['ca.crt', 'serving.crt', 'serving.key']) rmSync(path(name))
    const { ca } = await readCertificates(pkiDir, '127.0.0.1', Date.now())
    equal(ca, readFileSync(path('ca.crt'), 'utf8'))
  }))

for (const name of ['serving.crt', 'serving.key'])
  for (const [what, damage] of Object.entries(damages))
    test(`replaces ${what} ${name} with a new serving certificate of the same authority`, () =>
      withPki(async (pkiDir, path) => {
        const ca = readFileSync(path('ca.crt'), 'utf8')
        const before = readFileSync(path('serving.crt'), 'utf8')
        damage(path(name))
        const read = await readCertificates(pkiDir, '127.0.0.1', Date.now())
        equal(read.ca, ca)
        notEqual(read.certificate, before)
        equal(new X509Certificate(read.certificate).verify(new X509Certificate(ca).publicKey), true)
        equal(read.key, readFileSync(path('serving.key'), 'utf8'))
      }))

test('rejects a truncated key of service account tokens, and names the file', () =>
  withPki(async (pkiDir, path) => {
    new SigningKey(pkiDir)
    truncateSync(path('service-account.key'), 60)
    throws(() => new SigningKey(pkiDir), { code: 'DataCorrupt', message: /service-account\.key is not a PEM key: restore it/ })
  }))
