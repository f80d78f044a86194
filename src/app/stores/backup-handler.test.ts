import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { inspectStateFile, stateKeyId } from '../../stores/state/state-copy.ts'
import { readTar } from '../tar.ts'
import { backupHeaders, createBackupHandlers } from './backup-handler.ts'
import { readStateKey } from './state-key.ts'
import { openStores } from './stores.ts'

/** Serves the backups of new stores; the header `X-User` names the user, of whom `admin` has the right. */
async function serve(t: TestContext) {
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-backup-handler-'))
  const stores = await openStores({ dataDir, log: silentLog })
  const handlers = createBackupHandlers({ stores, access: { isAllowed: async ({ name }) => name === 'admin' }, log: silentLog })
  const server = createServer((request, response) => {
    const name = request.headers['x-user']
    const handler = request.url === '/logs/backup' ? handlers.log : handlers.state
    void handler(request, response, { user: typeof name === 'string' ? { name, groups: [] } : undefined })
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await stores.close()
    rmSync(dataDir, { recursive: true, force: true })
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const get = (path: string, user?: string, method = 'GET') => fetch(`${url}${path}`, { method, headers: user ? { 'x-user': user } : {} })
  const copyOf = async (response: Response, name: string) => {
    const path = join(dataDir, name)
    writeFileSync(path, Buffer.from(await response.arrayBuffer()))
    return path
  }
  return { dataDir, stores, get, copyOf }
}

test('only users with the right to create backups get a copy', async t => {
  const { dataDir, get } = await serve(t)
  for (const path of ['/state/backup', '/logs/backup']) {
    equal((await get(path)).status, 401)
    const forbidden = await get(path, 'worker')
    equal(forbidden.status, 403)
    match(await forbidden.text(), /"worker\\" may not create backups/)
    equal((await get(path, 'admin', 'DELETE')).status, 405)
    const allowed = await get(path, 'admin')
    equal(allowed.status, 200)
    await allowed.arrayBuffer()
  }
  deepEqual(
    readdirSync(join(dataDir, 'state')).filter(name => name.startsWith('backup')),
    [],
  )
})

test('a copy that is made while states are written has every version that was acknowledged before', async t => {
  const { dataDir, stores, get, copyOf } = await serve(t)
  const acknowledged = new Map<string, number>()
  let isDone = false
  const write = async (stackUid: string) => {
    for (let serial = 1; !isDone; serial++) {
      const result = await stores.state.writeVersion({ stackUid, runName: 'run', epoch: 1, bytes: Buffer.from(`{"serial":${serial}}`) })
      if (result.kind === 'accepted') acknowledged.set(stackUid, result.version)
    }
  }
  const writing = ['a', 'b', 'c'].map(write)
  try {
    for (let round = 0; round < 5; round++) {
      const before = new Map(acknowledged)
      // The copy before ends a moment after its last byte was received.
      const response = await eventually(
        async () => await get('/state/backup', 'admin'),
        ({ status }) => status !== 429,
      )
      equal(response.status, 200)
      equal(response.headers.get(backupHeaders.keyId), stateKeyId(readStateKey(dataDir)))
      const { newestVersions } = inspectStateFile(await copyOf(response, `copy-${round}.db`))
      for (const [uid, version] of before) ok((newestVersions.get(uid) ?? 0) >= version, `${uid} has version ${newestVersions.get(uid)}`)
    }
  } finally {
    isDone = true
    await Promise.all(writing)
  }
  ok((acknowledged.get('a') ?? 0) > 5)
})

test('the stores that are closed during a backup complete it first', async t => {
  const { dataDir, stores } = await serve(t)
  await stores.state.writeVersion({ stackUid: 'a', runName: 'run', epoch: 1, bytes: Buffer.from('{}') })
  const path = join(dataDir, 'copy.db')
  const copying = stores.state.backUp(path)
  await stores.state.close()
  await copying
  deepEqual([...inspectStateFile(path).newestVersions], [['a', 1]])
})

test('a copy of the logs has each log as it was', async t => {
  const { stores, get, copyOf } = await serve(t)
  await stores.log.append({ namespace: 'team', run: 'web-1' }, 0, Buffer.from('first\n'))
  await stores.log.append({ namespace: 'team', run: 'web-2' }, 0, Buffer.from('second, longer\n'))
  await stores.log.end({ namespace: 'team', run: 'web-2' })
  await stores.log.append({ namespace: 'team', run: 'removed' }, 0, Buffer.from('x'))
  await stores.log.remove({ namespace: 'team', run: 'removed' })
  const path = await copyOf(await get('/logs/backup', 'admin'), 'logs.tar')
  const files = new Map((await Array.fromAsync(readTar(path))).map(({ name, size }) => [name, size]))
  deepEqual([...files.keys()].sort(), [
    'team/web-1.log',
    'team/web-1.meta',
    'team/web-1.times',
    'team/web-2.log',
    'team/web-2.meta',
    'team/web-2.times',
  ])
  deepEqual([files.get('team/web-1.log'), files.get('team/web-2.log')], [6, 15])
})

test('what a process that was killed during a backup has left is removed', async t => {
  const { dataDir, stores } = await serve(t)
  const left = join(dataDir, 'state', 'backup.sending-journal')
  writeFileSync(left, 'x')
  createBackupHandlers({ stores, access: { isAllowed: async () => true }, log: silentLog })
  ok(!existsSync(left))
})
