import { equal, match } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { issueClientCertificate, readServingCertificates } from '../../kubernetes/server/index.ts'
import { expiryWarning } from './warn-before-expiry.ts'

const dayMs = 24 * 3_600_000

test('a certificate is reported from 30 days before its end, with what to do', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-expiry-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const nowMs = Date.parse('2026-11-27T00:00:00Z')
  await readServingCertificates(directory, '127.0.0.1', nowMs)
  const { certificate } = await issueClientCertificate(directory, { name: 'gateway', groups: [], ttlMs: 100 * dayMs }, nowMs)
  equal(expiryWarning('serving', certificate, nowMs + 69 * dayMs), undefined)
  match(
    expiryWarning('serving', certificate, nowMs + 71 * dayMs) ?? '',
    /^the serving certificate of this gateway expires on 2027-03-07: run "oarlock partition add-gateway"/,
  )
  match(expiryWarning('serving', certificate, nowMs + 101 * dayMs) ?? '', /has expired on 2027-03-07/)
})
