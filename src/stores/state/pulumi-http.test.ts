import { deepStrictEqual, equal, match, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { LockedError, StaleEpochError, StateClientError } from './index.ts'
import { batch, begin, created, namesIn, stateOf } from './pulumi-journal.testing.ts'
import { backendOf, clientOf, withStateServer } from './state-server.testing.ts'

const withCode = (status: number, code: string) => (error: unknown) =>
  error instanceof StateClientError && error.status === status && error.code === code

test('a Run stores journal entries and completes the update, and reads the state at every time', () =>
  withStateServer(async server => {
    const client = clientOf(server, 1)
    await client.lock()
    equal(await client.readPulumiState(), undefined)
    equal(await client.appendJournal(1, batch(begin(1, 'a')), { cliVersion: '3.260.0' }), 1)
    equal(await client.appendJournal(1, batch(created(2, 'a', { operationID: 1 }))), 1)
    equal(client.newestVersion, 1)
    const read = await client.readPulumiState()
    deepStrictEqual([read?.version, read?.epoch, namesIn(read?.bytes)], [1, 1, ['a']])
    equal(await client.completeJournal(1), 1)
    equal(await client.completeJournal(1), 1)
    deepStrictEqual(namesIn((await client.readPulumiState())?.bytes), ['a'])
    equal(await client.writePulumiState(stateOf('b')), 2)
    equal(await client.read(), undefined)
    await client.unlock()
    await client.close()
  }))

test('a rejected batch is an orphan, and the client does not retry it', () =>
  withStateServer(async server => {
    const [old, next] = [clientOf(server, 1), clientOf(server, 2)]
    await next.lock()
    const stale = (error: unknown) => error instanceof StaleEpochError && error.orphan === 1
    await rejects(old.appendJournal(1, batch(created(1, 'a'))), stale)
    await rejects(old.completeJournal(1), StaleEpochError)
    await rejects(clientOf(server, 3).appendJournal(1, batch(created(1, 'b'))), LockedError)
    await next.appendJournal(1, batch(created(1, 'c')))
    await rejects(next.appendJournal(1, batch(created(1, 'd'))), withCode(409, 'JournalConflict'))
    await rejects(next.appendJournal(1, Buffer.from('{}')), withCode(400, 'InvalidArgument'))
    await next.completeJournal(1)
    await rejects(next.appendJournal(1, batch(created(2, 'd'))), withCode(409, 'JournalClosed'))
    const user = backendOf({ ...server, token: 'user' })
    equal((await user('GET', '/orphans/1')).text, batch(created(1, 'a')).toString())
    deepStrictEqual(
      ((await user('GET', '/orphans')).json.orphans as { kind: string; reason: string }[]).map(({ kind, reason }) => [kind, reason]),
      [
        ['pulumi-journal', 'JournalClosed'],
        ['pulumi-journal', 'NotLockHolder'],
        ['pulumi-journal', 'StaleEpoch'],
      ],
    )
    await Promise.all([old.close(), next.close()])
  }))

test('a batch beyond the limit gets 413, so that the CLI splits it', () =>
  withStateServer(
    async server => {
      const client = clientOf(server, 1)
      await rejects(client.appendJournal(1, batch(created(1, 'a'), created(2, 'b'), created(3, 'c'))), withCode(413, 'TooLarge'))
      await client.appendJournal(1, batch(created(1, 'a')))
      await rejects(client.appendJournal(1, batch(created(2, 'b'), created(3, 'c'))), withCode(413, 'TooLarge'))
      await client.appendJournal(1, batch(created(2, 'b')))
      deepStrictEqual(namesIn((await client.readPulumiState())?.bytes), ['a', 'b'])
      await client.close()
    },
    { limits: { journalEntries: 2, journalBatchBytes: 500 } },
  ))

test('secrets are decrypted by every Run of the Stack, and for no other Stack', () =>
  withStateServer(async server => {
    const [first, second] = [clientOf(server, 1), clientOf(server, 2)]
    const values = [Buffer.from('hunter22'), Buffer.alloc(0), Buffer.from([0, 255])]
    const encrypted = await first.encrypt(values)
    deepStrictEqual(await second.decrypt(encrypted), values)
    equal(
      encrypted.some(value => value.includes('hunter22')),
      false,
    )
    const [again] = await first.encrypt(values)
    equal(again?.equals(encrypted[0] ?? again), false)
    const ofOther = server.store.encryptSecrets('other', values)
    await rejects(second.decrypt(ofOther), withCode(400, 'DecryptionFailed'))
    await rejects(second.decrypt([Buffer.from('plain')]), /value 0 cannot be decrypted/)
    const post = (body: string) =>
      fetch(`${server.url}/state/apps/net/run/run-1/encrypt`, {
        ...{ method: 'POST', body },
        headers: { authorization: 'Bearer worker', 'oarlock-epoch': '1' },
      })
    for (const body of ['', '[]', 'null', '{"values":{}}', '{"values":["ü"]}', '{"values":[1]}']) equal((await post(body)).status, 400)
    await Promise.all([first.close(), second.close()])
  }))

test('the worker of an ended Run keeps its entries as an orphan, and has no access to secrets', async () => {
  let access: 'ended-run' | 'lost-run' = 'ended-run'
  await withStateServer(
    async server => {
      const client = clientOf(server, 1, { deadlineMs: 0 })
      await rejects(client.appendJournal(1, batch(created(1, 'a'))), withCode(409, 'RunEnded'))
      const calls = [() => client.completeJournal(1), () => client.encrypt([]), () => client.decrypt([]), () => client.readPulumiState()]
      for (const call of calls) await rejects(call, withCode(403, 'RunEnded'))
      access = 'lost-run'
      equal(await client.appendJournal(1, batch(created(1, 'a'))), 2)
      await client.close()
    },
    { handler: { authorize: async () => ({ allowed: true, stackUid: 'uid', access }) } },
  )
})

test('a user reads and writes the state of Pulumi with ?kind=pulumi, and Terraform never gets it', () =>
  withStateServer(async server => {
    const client = clientOf(server, 1)
    await client.appendJournal(1, batch(created(1, 'a')))
    const user = backendOf({ ...server, token: 'user' })
    deepStrictEqual(namesIn(Buffer.from((await user('GET', '?kind=pulumi')).text)), ['a'])
    equal((await user('GET')).status, 204)
    equal((await user('GET', '?kind=inventory')).status, 400)
    deepStrictEqual((await user('GET', '/check')).json, { newest: 1, pulumi: { resources: 1, pendingOperations: 0 } })
    equal((await user('POST', '?kind=pulumi', '{"version":4,"serial":1}')).status, 400)
    deepStrictEqual((await user('POST', '?kind=pulumi', stateOf('x').toString())).json, { version: 2 })
    await rejects(client.appendJournal(1, batch(created(2, 'b'))), StaleEpochError)
    deepStrictEqual(namesIn(Buffer.from((await user('GET', '/versions/1')).text)), ['a'])
    await client.close()
  }))

test('a journal that is not understood is an error that names the CLI, never a part of the state', async () => {
  let failures = 0
  await withStateServer(
    async server => {
      const client = clientOf(server, 1)
      await client.writePulumiState(stateOf('old'))
      await client.appendJournal(1, batch(created(1, 'a', { kind: 42 })), { cliVersion: '3.300.0' })
      const unreadable = (error: unknown) =>
        withCode(409, 'JournalUnreadable')(error) && /Pulumi 3\.300\.0.*unknown entry kind 42/.test((error as Error).message)
      await rejects(client.readPulumiState(), unreadable)
      await rejects(client.completeJournal(1), unreadable)
      const user = backendOf({ ...server, token: 'user' })
      equal((await user('GET', '?kind=pulumi')).status, 409)
      match((await user('GET', '/check')).text, /"unreadable":"the journal of Run run-1/)
      equal((await user('POST', '?kind=pulumi', stateOf('old').toString())).status, 200)
      equal((await user('GET', '?kind=pulumi')).status, 200)
      await client.close()
      equal(failures, 3)
    },
    { handler: { onJournalUnreadable: () => failures++ } },
  )
})

test('a version of the CLI with other characters is rejected', () =>
  withStateServer(async server => {
    const client = clientOf(server, 1)
    await rejects(client.appendJournal(1, batch(created(1, 'a')), { cliVersion: '3.260.0 <b>' }), withCode(400, 'BadRequest'))
    await client.close()
  }))

test('a user decrypts what was encrypted for the Stack, the token of the Stack does not', () =>
  withStateServer(async server => {
    const client = clientOf(server, 1)
    const values = (await client.encrypt([Buffer.from('"secret"'), Buffer.alloc(0)])).map(each => each.toString('base64'))
    const user = backendOf({ ...server, token: 'user' })
    const decrypted = await user('POST', '/decrypt', JSON.stringify({ values }))
    deepStrictEqual([decrypted.status, decrypted.json], [200, { values: [Buffer.from('"secret"').toString('base64'), ''] }])
    equal((await user('POST', '/decrypt', '{"values":["AAAA"]}')).status, 400)
    equal((await user('POST', '/decrypt', '{"values":"AAAA"}')).status, 400)
    equal((await user('GET', '/decrypt')).status, 405)
    equal((await backendOf(server)('POST', '/decrypt', JSON.stringify({ values }))).status, 403)
    await client.close()
  }))
