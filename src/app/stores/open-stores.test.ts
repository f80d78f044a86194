import { equal, match, notEqual, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { openStores } from './stores.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-stores-'))
after(() => rmSync(base, { recursive: true, force: true }))

const open = (name: string) => openStores({ dataDir: join(base, name), log: silentLog })
const inUse = { name: 'AppStartError', kind: 'DataDirectory', message: /shared is in use by another "oarlock stores"/, hint: /--data/ }

test('a directory is rejected while another process has its stores open, and accepted after SIGKILL', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'hold-stores.testing.ts'), join(base, 'shared')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [id] = await once(child.stdout.setEncoding('utf8'), 'data')
  await rejects(open('shared'), inUse)
  child.kill('SIGKILL')
  await once(child, 'exit')
  const stores = await open('shared')
  equal(stores.id, String(id).trim())
  await stores.close()
})

test('the lock does not depend on the file of the state store, which is closed when it is idle', async () => {
  const stores = await open('shared')
  await stores.state.close()
  await rejects(open('shared'), inUse)
  await stores.close()
  await (await open('shared')).close()
})

test('the id is kept while the states exist, and is new without them', async () => {
  const idOf = async () => {
    const stores = await open('id')
    await stores.close()
    return stores.id
  }
  const first = await idOf()
  match(first, /^[0-9a-f]{32}$/)
  equal(await idOf(), first)
  rmSync(join(base, 'id', 'state', 'state.db'))
  notEqual(await idOf(), first)
})

test('removes the access of other users from the data directory', async () => {
  mkdirSync(join(base, 'open'))
  chmodSync(join(base, 'open'), 0o777)
  await (await open('open')).close()
  equal(statSync(join(base, 'open')).mode & 0o777, 0o700)
})
