import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, test } from 'node:test'
import { configMapResource } from '../kubernetes/client/index.ts'
import { silentLog } from '../kubernetes/controller/index.ts'
import { startTestServer, type TestServer } from '../kubernetes/testing/index.ts'
import { AppStartError } from './app-start-error.ts'
import { startControllerProcess } from './controllers/controller-process.ts'
import { installOarlock } from './controllers/install.ts'
import { startJoinProcess } from './join/join-process.ts'
import { startPool } from './pool-agent/index.ts'
import { startStoresProcess } from './stores/stores-process.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-data-'))
let api: TestServer
afterEach(async () => {
  // Each test of the stores makes other states those of the installation.
  const configMaps = api.client.resource(configMapResource)
  const at = { namespace: 'oarlock-system' }
  if (await configMaps.getOrUndefined('oarlock-endpoint-stores', at)) await configMaps.delete('oarlock-endpoint-stores', at)
})
before(async () => {
  api = await startTestServer()
  await installOarlock(api.client)
})
after(async () => {
  await api?.close()
  rmSync(base, { recursive: true, force: true })
})

const listen = { host: '127.0.0.1', port: 0 }
const log = silentLog
/** Starts each role on a data directory; returns how to stop it. */
const roles: Record<string, (dataDir: string) => Promise<() => Promise<void>>> = {
  controller: async dataDir => {
    const controller = await startControllerProcess({
      ...{
        client: api.client,
        access: {},
        cacheDir: join(dataDir, 'cache'),
        allowPaths: [],
        healthAddress: listen,
        crds: 'install',
        version: 'test',
      },
      ...{ queue: { dataDir, listen, names: [] }, log },
    })
    await controller.whenLeader
    return async () => await controller.stop({ graceMs: 5_000 })
  },
  stores: async dataDir => (await startStoresProcess({ client: api.client, dataDir, listen, names: [], log, onLost: () => {} })).stop,
  'join service': async dataDir => {
    const server = { url: api.client.server, caCertificate: undefined }
    return (await startJoinProcess({ client: api.client, dataDir, listen, names: [], api: server, log })).stop
  },
  pool: async dataDir => {
    const joinEndpoint = async () => ({ url: '', caCertificate: '' })
    const settings = { pools: ['default'], maxWorkers: 1, labels: {}, launcher: [], allowPaths: [] }
    const pool = startPool({ client: api.client, joinEndpoint, dataDir, ...settings, log })
    await pool.whenReady
    return async () => await pool.stop({ graceMs: 0 })
  },
}

for (const [role, start] of Object.entries(roles)) {
  test(`${role}: removes the access of other users from its data directory`, async () => {
    const dataDir = mkdtempSync(join(base, 'own-'))
    chmodSync(dataDir, 0o777)
    await (await start(dataDir))()
    equal(statSync(dataDir).mode & 0o777, 0o700)
  })

  test(`${role}: does not start on the data directory of another role, and leaves it unchanged`, async () => {
    const dataDir = mkdtempSync(join(base, 'of-another-'))
    const owner = role === 'stores' ? 'pool' : 'stores'
    mkdirSync(join(dataDir, 'state'))
    // A directory with states, which stores may open.
    for (const name of ['state/state.db', 'role']) writeFileSync(join(dataDir, name), name === 'role' ? `${owner}\n` : '')
    await rejects(
      start(dataDir).then(stop => stop()),
      { name: 'AppStartError', kind: 'DataDirectory', message: `${dataDir} is the data directory of "oarlock ${owner}"` },
    )
    deepEqual(readdirSync(dataDir).sort(), ['role', 'state'])
    if (role === 'stores') return
    renameSync(join(dataDir, 'role'), join(dataDir, 'oarlock.db'))
    await rejects(
      start(dataDir).then(stop => stop()),
      { message: `${dataDir} is the data directory of "oarlock up" or "oarlock serve"` },
    )
  })

  test(`${role}: one process uses its data directory at a time, which none but its user can read`, async () => {
    const dataDir = mkdtempSync(join(base, 'shared-'))
    const stop = await start(dataDir)
    await rejects(start(dataDir), { name: 'AppStartError', kind: 'DataDirectory', message: /is in use by another "oarlock / })
    const readable = readdirSync(dataDir, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile() && (statSync(join(entry.parentPath, entry.name)).mode & 0o077) !== 0)
      .map(({ name }) => name)
    deepEqual(
      readable.filter(name => !name.endsWith('.crt')),
      [],
    )
    await stop()
    await (await start(dataDir))()
  })

  // Only root can give a directory to another user.
  if (process.geteuid?.() !== 0) continue
  test(`${role}: does not start on a data directory of another user that others can write`, async () => {
    const dataDir = mkdtempSync(join(base, 'foreign-'))
    chmodSync(dataDir, 0o777)
    chownSync(dataDir, 4_242, 4_242)
    // Stopped if it starts after all: the test must end.
    await rejects(
      start(dataDir).then(stop => stop()),
      { name: 'AppStartError', kind: 'DataDirectory' },
    )
  })
}

test('pool: does not start if sandboxes would see its data directory', async t => {
  const dataDir = mkdtempSync(join(base, 'bound-'))
  process.env.OARLOCK_SANDBOX_BINDS = `/opt/tools:${base}`
  t.after(() => delete process.env.OARLOCK_SANDBOX_BINDS)
  await rejects(roles.pool!(dataDir), error => {
    match((error as Error).message, /^OARLOCK_SANDBOX_BINDS contains .*, which has the data directory .* in it; /)
    return error instanceof AppStartError
  })
  equal(existsSync(join(dataDir, 'role')), false)
})
