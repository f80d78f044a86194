import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WorkerOptionError, workerOptionsFromEnv } from './index.ts'

const env = { OARLOCK_SERVER: 'https://127.0.0.1:7466/', OARLOCK_TOKEN: 't' }

test('reads what is set, and uses defaults for the rest', () => {
  const read = workerOptionsFromEnv({ ...env, OARLOCK_ALLOW_PATHS: '/a:/b', OARLOCK_DRAIN_GRACE: '90s' }, { name: 'w1', once: true })
  assert.deepEqual(
    [read.server, read.storeUrl, read.name, read.pool, read.lifecycle],
    ['https://127.0.0.1:7466', 'https://127.0.0.1:7466', 'w1', 'default', 'OneShot'],
  )
  assert.deepEqual([read.allowPaths, read.drainGraceMs], [['/a', '/b'], 90_000])
  assert.deepEqual(workerOptionsFromEnv(env).lease, {
    durationMs: 10_000,
    renewMs: 2_000,
    interruptMs: 6_000,
    terminateMs: 7_500,
    killMs: 9_000,
  })
  const { interruptMs, killMs } = workerOptionsFromEnv({ ...env, OARLOCK_LEASE_DURATION: '1m' }).lease
  assert.deepEqual([interruptMs, killMs], [56_000, 59_000])
  const plain = workerOptionsFromEnv(env)
  assert.deepEqual([plain.lifecycle, plain.slots, plain.idleTimeoutMs, plain.drainGraceMs], [undefined, undefined, undefined, undefined])
  const pooled = workerOptionsFromEnv({
    ...env,
    OARLOCK_LIFECYCLE: 'Warm',
    OARLOCK_SLOTS: '3',
    OARLOCK_IDLE_TIMEOUT: '2m',
    OARLOCK_RECYCLE_AFTER_RUNS: '50',
    OARLOCK_RECYCLE_ABOVE_MEMORY: '512Mi',
    OARLOCK_GIT_CACHE_SIZE: '2Gi',
    OARLOCK_PROVIDER_CACHE_SIZE: '3Gi',
    OARLOCK_DEPENDENCY_CACHE_SIZE: '4Gi',
  })
  assert.deepEqual(
    [
      pooled.lifecycle,
      pooled.slots,
      pooled.idleTimeoutMs,
      pooled.recycleAfterRuns,
      pooled.recycleAboveBytes,
      pooled.gitCacheBytes,
      pooled.providerCacheBytes,
      pooled.dependencyCacheBytes,
    ],
    ['Warm', 3, 120_000, 50, 536_870_912, 2_147_483_648, 3_221_225_472, 4_294_967_296],
  )
  assert.match(plain.name, /^[a-z0-9][a-z0-9-]*-\d+-[a-z0-9]+$/)
})

test('a worker Pod uses the API server of the cluster and looks for the stores, unless its environment names them', () => {
  const pod = { OARLOCK_POD_UID: 'u1', OARLOCK_TOKEN_FILE: import.meta.filename, KUBERNETES_SERVICE_HOST: 'fd00::1' }
  const found = workerOptionsFromEnv(pod)
  assert.equal(found.server, 'https://[fd00::1]:443')
  assert.deepEqual(found.pod, { uid: 'u1', tokenFile: import.meta.filename, isDeregisteredByController: false, findsStores: true })
  const named = workerOptionsFromEnv({ ...pod, OARLOCK_SERVER: 'https://api:7466' })
  assert.deepEqual([named.server, named.storeUrl, named.pod?.findsStores], ['https://api:7466', 'https://api:7466', false])
  assert.equal(workerOptionsFromEnv({ ...env, KUBERNETES_SERVICE_HOST: '10.0.0.1' }).server, 'https://127.0.0.1:7466')
})

for (const [variables, overrides, message] of [
  [{ OARLOCK_SERVER: '' }, {}, /^OARLOCK_SERVER is not set; it must be the address of the API server/],
  [{ OARLOCK_SERVER: 'unix://api.sock' }, {}, /^OARLOCK_SERVER: URL "unix:\/\/api\.sock" must be unix:\/\/ and an absolute path/],
  [{ OARLOCK_SERVER: 'localhost' }, {}, /^OARLOCK_SERVER "localhost" must be an https:\/\/, http:\/\/ or unix:\/\/\/ URL/],
  [{ OARLOCK_TOKEN: undefined }, {}, /^OARLOCK_TOKEN is not set; .* OARLOCK_TOKEN_FILE/],
  [{ OARLOCK_TOKEN_FILE: '/dev/null', OARLOCK_TOKEN: undefined }, {}, /^OARLOCK_TOKEN_FILE: token file "\/dev\/null" is empty$/],
  [{}, { tokenFile: '/dev/null' }, /^--token-file: token file "\/dev\/null" is empty$/],
  [{ OARLOCK_POD_UID: 'u1' }, {}, /^OARLOCK_TOKEN_FILE is not set; with OARLOCK_POD_UID it must be the file of the token of the Pod$/],
  [{ OARLOCK_CA_FILE: '/no/such' }, {}, /^OARLOCK_CA_FILE "\/no\/such" cannot be read/],
  [{ OARLOCK_ALLOW_PATHS: 'a' }, {}, /^OARLOCK_ALLOW_PATHS contains "a"; it must be absolute/],
  [
    { OARLOCK_SANDBOX_BINDS: '/opt/tools:/srv', OARLOCK_RUNS_DIR: '/srv/oarlock/runs' },
    {},
    /^OARLOCK_SANDBOX_BINDS contains "\/srv", which has OARLOCK_RUNS_DIR \/srv\/oarlock\/runs in it; /,
  ],
  [
    { OARLOCK_SANDBOX_BINDS: '/srv/cache/', OARLOCK_CACHE_DIR: '/srv/cache' },
    {},
    /^OARLOCK_SANDBOX_BINDS contains "\/srv\/cache\/", which has OARLOCK_CACHE_DIR/,
  ],
  [{ OARLOCK_DRAIN_GRACE: 'soon' }, {}, /^OARLOCK_DRAIN_GRACE: duration "soon" must be/],
  [{ OARLOCK_LEASE_DURATION: '9s' }, {}, /^OARLOCK_LEASE_DURATION "9s" must be from 10s to 5m/],
  [{ OARLOCK_LEASE_DURATION: '301s' }, {}, /^OARLOCK_LEASE_DURATION "301s" must be from 10s to 5m/],
  [{ OARLOCK_SLOTS: '0' }, {}, /^OARLOCK_SLOTS "0" must be a whole number from 1 to 64/],
  [{ OARLOCK_LIFECYCLE: 'Hot' }, {}, /^OARLOCK_LIFECYCLE "Hot" must be OneShot or Warm/],
  [{ OARLOCK_RECYCLE_ABOVE_MEMORY: 'much' }, {}, /^OARLOCK_RECYCLE_ABOVE_MEMORY: /],
  [{ OARLOCK_PROVIDER_CACHE_SIZE: 'small' }, {}, /^OARLOCK_PROVIDER_CACHE_SIZE: /],
  [{ OARLOCK_DEPENDENCY_CACHE_SIZE: 'small' }, {}, /^OARLOCK_DEPENDENCY_CACHE_SIZE: /],
  [{ OARLOCK_GIT_CACHE_SIZE: 'small' }, {}, /^OARLOCK_GIT_CACHE_SIZE: /],
  [{}, { name: 'Not Good' }, /^--name "Not Good": a lowercase RFC 1123 subdomain/],
] as const) {
  test(`rejects ${JSON.stringify({ ...variables, ...overrides })}`, () => {
    assert.throws(
      () => workerOptionsFromEnv({ ...env, ...variables }, overrides),
      error => error instanceof WorkerOptionError && message.test(error.message),
    )
  })
}
