import { deepStrictEqual, equal, ok, rejects } from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { LockedError, StaleEpochError, StateClient, StateClientError, streamStateFile } from './index.ts'
import { clientOf, withStateServer } from './state-server.testing.ts'

test('retries a server error', () => {
  let failures = 2
  return withStateServer(
    async server => {
      const client = clientOf(server, 1)
      equal(await client.write(Buffer.from('{}')), 1)
      equal(server.errors.splice(0).length, 2)
      await client.close()
    },
    {
      handler: {
        authorize: async () => {
          if (failures-- > 0) throw new Error('the API server is restarting')
          return { allowed: true, stackUid: 'uid', access: 'run' }
        },
      },
    },
  )
})

test('locks, writes versions, inventory and plans over TLS', () =>
  withStateServer(
    async server => {
      const client = clientOf(server, 1)
      equal(await client.read(), undefined)
      deepStrictEqual(await client.lock(), {})
      equal(await client.write(Buffer.from('{"serial":1}')), 1)
      equal(await client.write(Buffer.from('{"serial":1}')), 1)
      equal(await client.write(Buffer.from('{"serial":2}')), 2)
      const { version, epoch, bytes } = (await client.read()) ?? { bytes: '' }
      deepStrictEqual([version, epoch, bytes.toString()], [2, 1, '{"serial":2}'])
      equal(await client.readInventory(), undefined)
      await client.writeInventory(Buffer.from('[]'))
      equal((await client.readInventory())?.bytes.toString(), '[]')
      equal(await client.getPlan('sha256:abc'), undefined)
      await client.putPlan('sha256:abc', Buffer.from('plan'))
      equal((await client.getPlan('sha256:abc'))?.toString(), 'plan')
      await client.unlock()
      await client.unlock()
      await client.close()
      const untrusting = clientOf({ ...server, ca: undefined }, 1, { deadlineMs: 0 })
      await rejects(untrusting.read(), { code: 'Unreachable' })
      await untrusting.close()
    },
    { tls: true },
  ))

test('rejects with StaleEpochError for an older epoch (invariant 3) and with LockedError for a held lock', () =>
  withStateServer(async server => {
    const [old, next] = [clientOf(server, 1), clientOf(server, 2)]
    await old.lock()
    await rejects(
      next.lock(),
      (error: LockedError) => error instanceof LockedError && error.holder?.kind === 'Run' && error.holder.runName === 'run-1',
    )
    server.abandoned.add('run-1')
    deepStrictEqual(await next.lock(), { brokenHolder: { kind: 'Run', runName: 'run-1', epoch: 1 } })
    await next.write(Buffer.from('{"serial":2}'))
    await rejects(
      old.write(Buffer.from('{"late":true}')),
      (error: StaleEpochError) => error instanceof StaleEpochError && error.orphan === 2,
    )
    await rejects(old.lock(), StaleEpochError)
    await rejects(old.unlock(), LockedError)
    equal((await server.store.readVersion({ stackUid: 'uid', version: 2 }))?.bytes.toString(), '{"late":true}')
    await Promise.all([old.close(), next.close()])
  }))

test('retries until its deadline, and a delayed copy of an older write does not replace a newer one', () =>
  withStateServer(async server => {
    const client = clientOf(server, 1)
    let lost = 0
    const loseResponses = (_: unknown, res: { end: unknown; destroy(): void }) => {
      if (++lost > 2) return
      res.end = () => res.destroy()
    }
    server.server.prependListener('request', loseResponses)
    const [first, second] = await Promise.all([client.write(Buffer.from('{"serial":1}')), client.write(Buffer.from('{"serial":2}'))])
    deepStrictEqual([first, second, lost], [1, 2, 4])
    const late = await fetch(`${server.url}/state/apps/net/run/run-1/state`, {
      ...{
        method: 'PUT',
        body: '{"serial":1}',
        headers: { authorization: 'Bearer worker', 'oarlock-epoch': '1', 'oarlock-sequence': '1' },
      },
    })
    equal(late.status, 200)
    equal((await client.read())?.bytes.toString(), '{"serial":2}')
    await client.close()
    const unreachable = new StateClient({
      baseUrl: 'http://127.0.0.1:1',
      token: 't',
      namespace: 'a',
      stack: 'b',
      runName: 'c',
      epoch: 1,
      deadlineMs: 250,
    })
    const startMs = performance.now()
    await rejects(unreachable.read(), (error: StateClientError) => error instanceof StateClientError && error.code === 'Unreachable')
    ok(performance.now() - startMs < 3_000)
    const abort = new AbortController()
    const aborted = unreachable.read({ deadlineMs: 60_000, signal: abort.signal })
    abort.abort(new Error('the Run was canceled'))
    await rejects(aborted, { message: 'the Run was canceled' })
    await unreachable.close()
  }))

test('locks, writes and reads over a Unix socket', () =>
  withStateServer(
    async server => {
      const client = clientOf(server, 1)
      await client.lock()
      equal(await client.write(Buffer.from('{"serial":1}')), 1)
      equal((await client.read())?.bytes.toString(), '{"serial":1}')
      await client.close()
    },
    { unix: true },
  ))

test('uploads every change of a state file over TLS', t =>
  withStateServer(
    async server => {
      const client = clientOf(server, 1)
      const path = join(server.directory, 'terraform.tfstate')
      let acknowledged: (text: string) => void = () => undefined
      const upload = async (bytes: Buffer) => {
        await client.write(bytes)
        acknowledged(bytes.toString())
      }
      const stream = streamStateFile({ path, upload, onError: error => t.diagnostic(String(error)) })
      for (let serial = 1; serial <= 3; serial++) {
        const text = JSON.stringify({ serial, text: 'resource '.repeat(11_000) })
        const arrived = new Promise<void>(resolve => {
          acknowledged = got => got === text && resolve()
        })
        writeFileSync(path, text)
        await arrived
        equal((await client.read())?.bytes.toString(), text)
      }
      stream.close()
      await client.close()
    },
    { tls: true },
  ))
