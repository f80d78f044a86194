import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { KubeObject } from '../../../object/index.ts'
import { issueClientCertificate, readCertificates } from '../../auth/index.ts'
import { tlsWarnings } from './index.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-tls-'))
after(() => rmSync(directory, { recursive: true, force: true }))
await readCertificates(directory, '127.0.0.1', Date.now())
const { certificate, key } = await issueClientCertificate(directory, { name: 'a', groups: [], ttlMs: 60_000 }, Date.now())
const otherKey = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }) as string

function secret(crt: string, privateKey: string, type = 'kubernetes.io/tls'): KubeObject {
  const data = { 'tls.crt': Buffer.from(crt).toString('base64'), 'tls.key': Buffer.from(privateKey).toString('base64') }
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } as KubeObject['metadata'], type, data }
}

for (const { what, object, warnings } of [
  { what: 'a matching pair', object: secret(certificate, key), warnings: [] },
  {
    what: 'the key of another certificate',
    object: secret(certificate, otherKey),
    warnings: ['tls: private key does not match public key'],
  },
  { what: 'a certificate that is not PEM', object: secret('a', 'b'), warnings: ['tls: failed to find any PEM data in certificate input'] },
  { what: 'a missing key', object: secret(certificate, ''), warnings: ['tls: failed to find any PEM data in key input'] },
  { what: 'a Secret of another type', object: secret('a', 'b', 'Opaque'), warnings: [] },
]) {
  test(`warnings about ${what}`, () => assert.deepEqual(tlsWarnings(object), warnings))
}
