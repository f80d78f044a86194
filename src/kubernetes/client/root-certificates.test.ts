import { deepEqual, equal, rejects } from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { test } from 'node:test'
import { getCACertificates } from 'node:tls'
import { createClient, disableBundledRootCertificates } from './index.ts'

test('skipped root certificates are restored for a server without a configured certificate authority', async () => {
  // Node may have the same certificate from two sources, with different line lengths.
  const trusted = () => [...new Set(getCACertificates('default').map(pem => new X509Certificate(pem).fingerprint256))].sort()
  const before = trusted()
  disableBundledRootCertificates()
  equal(getCACertificates('default').length, 0)
  const client = await createClient({ cluster: { server: 'https://127.0.0.1:1' } })
  await rejects(client.request({ method: 'GET', path: '/version' }), /127\.0\.0\.1:1/)
  await client.close()
  deepEqual(trusted(), before)
})
