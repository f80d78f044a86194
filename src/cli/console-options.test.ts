import { equal, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeCertificate } from '../../test/support/make-certificate.ts'
import { consoleSettings } from './console-options.ts'

test('--oidc-ca-file is read at the start, and must contain a PEM certificate', t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-options-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const { path, cert } = makeCertificate(directory)
  const text = join(directory, 'text')
  writeFileSync(text, 'not a certificate')
  const settings = (oidcCaFile: string) =>
    consoleSettings(
      {
        ...{ consoleHost: [], oidcIssuerUrl: 'https://x', oidcClientId: 'y', oidcScope: [], oidcUsernameClaim: 'sub' },
        ...{ oidcGroupsPrefix: '', oidcGroup: [], oidcCaFile },
      },
      'up',
    )
  equal(settings(path).oidc?.caCertificate, cert)
  throws(() => settings(text), { message: `--oidc-ca-file ${text} must contain a PEM certificate` })
  throws(() => settings(join(directory, 'missing')), { message: `--oidc-ca-file ${join(directory, 'missing')}: ENOENT` })
})
