import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkerOptionError, workerOptionsFromEnv } from './index.ts'

const env = { OARLOCK_SERVER: 'https://127.0.0.1:7466/', OARLOCK_TOKEN: 't' }

test('what is given is read, what is left out has a default', () => {
  const read = workerOptionsFromEnv({ ...env, OARLOCK_ALLOW_PATHS: '/a:/b', OARLOCK_DRAIN_GRACE: '90s' }, { name: 'w1', once: true })
  assert.deepEqual(
    [read.server, read.storeUrl, read.name, read.pool, read.once],
    ['https://127.0.0.1:7466', 'https://127.0.0.1:7466', 'w1', 'default', true],
  )
  assert.deepEqual([read.allowPaths, read.drainGraceMs], [['/a', '/b'], 90_000])
  assert.match(workerOptionsFromEnv(env).name, /^[a-z0-9][a-z0-9-]*-\d+-[a-z0-9]+$/)
})

for (const [wrong, overrides, says] of [
  [{ OARLOCK_SERVER: '' }, {}, /^OARLOCK_SERVER is not set; it must be the address of the API/],
  [{ OARLOCK_SERVER: 'localhost' }, {}, /^OARLOCK_SERVER "localhost" must be an http:\/\/ or https:\/\/ URL/],
  [{ OARLOCK_TOKEN: undefined }, {}, /^OARLOCK_TOKEN is not set; .* OARLOCK_TOKEN_FILE/],
  [{ OARLOCK_CA_FILE: '/no/such' }, {}, /^OARLOCK_CA_FILE names "\/no\/such", which cannot be read/],
  [{ OARLOCK_ALLOW_PATHS: 'a' }, {}, /^OARLOCK_ALLOW_PATHS holds "a"; it must be absolute/],
  [{ OARLOCK_DRAIN_GRACE: 'soon' }, {}, /^OARLOCK_DRAIN_GRACE: duration "soon" must be/],
  [{}, { name: 'Not Good' }, /^--name "Not Good": a lowercase RFC 1123 subdomain/],
] as const) {
  test(`refused: ${JSON.stringify({ ...wrong, ...overrides })}`, () => {
    assert.throws(
      () => workerOptionsFromEnv({ ...env, ...wrong }, overrides),
      error => error instanceof WorkerOptionError && says.test(error.message),
    )
  })
}
