import { deepStrictEqual, equal, rejects } from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { keptStatePath, recoverState } from './index.ts'
import { clientOf, withStateServer } from './state-server.testing.ts'

test('saves the last state of a lost worker once, or stores it as an orphan if it is stale or incomplete', () =>
  withStateServer(
    async server => {
      const path = join(server.directory, 'terraform.tfstate')
      const options = {
        path,
        root: server.directory,
        url: `${server.url}/state/apps/net/run/run-1/state`,
        token: 'worker',
        caCertificate: server.ca,
        epoch: 1,
      }
      deepStrictEqual(await recoverState(options), { kind: 'skipped', reason: `${path} does not exist` })
      writeFileSync(path, '')
      deepStrictEqual(await recoverState(options), { kind: 'skipped', reason: `${path} is empty` })
      writeFileSync(path, '{"serial":')
      deepStrictEqual(await recoverState(options), { kind: 'orphaned', orphan: 1 })
      deepStrictEqual(await recoverState(options), { kind: 'orphaned', orphan: 1 })
      const [incomplete] = await server.store.orphans('uid')
      deepStrictEqual([incomplete?.reason, incomplete?.author, incomplete?.epoch], ['Incomplete', 'run-1', 1])
      equal((await server.store.readVersion({ stackUid: 'uid', version: 1 }))?.bytes.toString(), '{"serial":')
      equal(await server.store.readVersion({ stackUid: 'uid' }), undefined, 'incomplete state is never current')
      writeFileSync(path, '{"serial":5}')
      deepStrictEqual(await recoverState(options), { kind: 'saved', version: 2 })
      deepStrictEqual(await recoverState(options), { kind: 'saved', version: 2 })
      writeFileSync(path, '{"serial":6}')
      deepStrictEqual(await recoverState(options), { kind: 'saved', version: 3 })
      const late = clientOf(server, 1)
      equal(await late.write(Buffer.from('{"serial":4}')), 3, 'a delayed write of the lost worker does not replace the recovered file')
      await server.store.lock({ stackUid: 'uid', holder: { kind: 'Run', runName: 'run-2', epoch: 2 } }, async () => true)
      writeFileSync(path, '{"serial":7}')
      deepStrictEqual(await recoverState(options), { kind: 'orphaned', orphan: 4 })
      mkdirSync(join(server.directory, 'private'))
      writeFileSync(join(server.directory, keptStatePath), '{"serial":8}')
      deepStrictEqual(await recoverState(options), { kind: 'orphaned', orphan: 4 }, 'a complete file is newer than what was kept')
      writeFileSync(path, '')
      deepStrictEqual(await recoverState(options), { kind: 'orphaned', orphan: 5 })
      equal((await server.store.readVersion({ stackUid: 'uid', version: 5 }))?.bytes.toString(), '{"serial":8}')
      await rejects(recoverState({ ...options, token: 'wrong', deadlineMs: 150 }), /failed to upload .* response status 403/)
      await rejects(recoverState({ ...options, url: 'https://127.0.0.1:1/x', deadlineMs: 150 }), /failed to upload/)
      await late.close()
    },
    { tls: true },
  ))

test('saves the last state of a lost worker over a Unix socket', () =>
  withStateServer(
    async server => {
      const path = join(server.directory, 'terraform.tfstate')
      writeFileSync(path, '{"serial":1}')
      const socketPath = join(server.directory, 'api.sock')
      const options = { path, root: server.directory, url: 'http://localhost/state/apps/net/run/run-1/state', token: 'worker', epoch: 1 }
      deepStrictEqual(await recoverState({ ...options, socketPath }), { kind: 'saved', version: 1 })
      await rejects(
        recoverState({ ...options, socketPath: '/missing/api.sock', deadlineMs: 150 }),
        /to \/missing\/api\.sock: connect ENOENT/,
      )
    },
    { unix: true },
  ))

test('imports only Node modules and two helpers, because the supervisor process must stay small', () => {
  const text = readFileSync(join(import.meta.dirname, 'recover-state.ts'), 'utf8')
  deepStrictEqual(
    [...text.matchAll(/(?:from|import\() ?'([^']+)'/g)].map(([, name]) => name),
    ['../../kubernetes/util/backoff.ts', '../../kubernetes/util/root-directory.ts', 'node:https'],
  )
})
