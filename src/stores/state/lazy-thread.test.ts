import { deepEqual, equal, rejects } from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { openStateStore, type StateStore, StateStoreError } from './index.ts'

const folder = mkdtempSync(join(tmpdir(), 'oarlock-lazy-thread-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const key = Buffer.alloc(32, 7)
const write = (store: StateStore, text: string, epoch = 1) =>
  store.writeVersion({ stackUid: 'u', runName: 'r', epoch, bytes: Buffer.from(JSON.stringify({ text })) })

/** The directory can be opened only once: opening it shows whether the other store has closed it. */
async function isFree(directory: string): Promise<boolean> {
  try {
    await (await openStateStore({ directory, key })).close()
    return true
  } catch (error) {
    if (error instanceof StateStoreError && error.code === 'InUse') return false
    throw error
  }
}

const whenFree = (directory: string) => eventually(() => isFree(directory), 'the store to close its file')

test('an idle store closes its file and opens it again for the next call', async () => {
  const directory = join(folder, 'a')
  const store = await openStateStore({ directory, key, idleTimeoutMs: 10 })
  equal((await write(store, 'one')).kind, 'accepted')
  await whenFree(directory)
  const [second, ...others] = await Promise.all([write(store, 'two'), store.versions('u'), store.readVersion({ stackUid: 'u' })])
  deepEqual(second, { kind: 'accepted', version: 2 })
  equal(others[1]?.bytes.toString(), '{"text":"two"}')
  await store.close()
  await rejects(write(store, 'three'), { code: 'Unavailable' })
})

test('a store keeps its file open before the idle timeout', async () => {
  const directory = join(folder, 'b')
  const store = await openStateStore({ directory, key, idleTimeoutMs: 60_000 })
  equal(await isFree(directory), false)
  await store.close()
  equal(await isFree(directory), true)
})

test('the caller may reuse its buffer when the call has returned, even while the thread starts', async () => {
  const directory = join(folder, 'c')
  const store = await openStateStore({ directory, key, idleTimeoutMs: 10 })
  await whenFree(directory)
  const bytes = Buffer.from('{"text":"mine"}')
  const written = store.writeVersion({ stackUid: 'u', runName: 'r', epoch: 1, bytes })
  bytes.fill(0)
  await written
  equal((await store.readVersion({ stackUid: 'u' }))?.bytes.toString(), '{"text":"mine"}')
  await store.close()
})
