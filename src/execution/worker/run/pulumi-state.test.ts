import { deepStrictEqual, equal, rejects } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { batch, begin, created, namesIn, removed, stateOf } from '../../../stores/state/pulumi-journal.testing.ts'
import { clientOf, type StateServer, withStateServer } from '../../../stores/state/state-server.testing.ts'
import { RunBackend } from '../../engine/pulumi/run-backend.ts'
import { createPulumiHandler, listenPulumi } from '../../pulumi-backend/index.ts'
import { accessToken, callPulumi, devPath } from '../../pulumi-backend/pulumi-client.testing.ts'
import { createPulumiState } from './pulumi-state.ts'

const stack = { organization: 'apps', project: 'web', stack: 'dev' }

/** The endpoint of Run `run-1` on the real store, called as by a CLI with or without a journal. */
async function openRun(t: TestContext, server: StateServer, cliVersion: string) {
  const client = clientOf(server, 1)
  const stops: string[] = []
  const stopper = { stop: ({ kind }: { kind: string }) => stops.push(kind), writeSignal: new AbortController().signal }
  const state = createPulumiState(client, stopper as unknown as Parameters<typeof createPulumiState>[1])
  const backend = new RunBackend({
    ...{ state, stack, readOther: async () => undefined, onEvents: () => {} },
    onRefused: error => stops.push(error.message),
  })
  const errors: unknown[] = []
  const endpoint = await listenPulumi(createPulumiHandler({ backend, accessToken, onError: error => errors.push(error) }))
  t.after(() => endpoint.close())
  await client.lock()
  const headers = { 'user-agent': `pulumi-cli/1 (v${cliVersion}; linux; cmd=up)` }
  const start = async () => {
    const { json } = await callPulumi(endpoint.url, 'POST', `${devPath}/update`, { headers, body: { name: 'web', runtime: 'yaml' } })
    const path = `${devPath}/update/${json.updateID}`
    const { json: started, status } = await callPulumi(endpoint.url, 'POST', path, { headers, body: { tags: {}, journalVersion: 1 } })
    if (status !== 200) throw new Error(`${status} ${started.message}`)
    return async (method: string, rest: string, bytes: Uint8Array) =>
      (await callPulumi(endpoint.url, method, `${path}/${rest}`, { headers, bytes, updateToken: String(started.token) })).status
  }
  const orphans = async () => (await server.store.orphans('uid')).map(({ kind, reason, author }) => [kind, reason, author])
  const current = async () => namesIn((await client.readPulumiState())?.bytes)
  return { client, stops, errors, start, orphans, current }
}

const complete = Buffer.from('{"status":"succeeded"}')
test('a checkpoint that is repeated after its update completed is an orphan, and the newer state stays current', t =>
  withStateServer(async server => {
    const { client, stops, errors, start, orphans, current } = await openRun(t, server, '3.100.0')
    const update = await start()
    equal(await update('PATCH', 'checkpoint', stateOf('a')), 200)
    equal(await update('PATCH', 'checkpoint', stateOf('a', 'b')), 200)
    equal(await update('POST', 'complete', complete), 200)
    equal(await update('PATCH', 'checkpoint', stateOf('a')), 403)
    equal(await update('PATCH', 'checkpoint', stateOf('a')), 403)
    deepStrictEqual(await current(), ['a', 'b'])
    deepStrictEqual(await orphans(), [['pulumi', 'UpdateEnded', 'run-1']])
    // The state that is current needs no orphan.
    equal(await update('PATCH', 'checkpoint', stateOf('a', 'b')), 403)
    deepStrictEqual((await orphans()).length, 1)
    deepStrictEqual([stops, errors], [[], []])
    const next = await start()
    equal(await next('PATCH', 'checkpoint', stateOf('c')), 200)
    deepStrictEqual(await current(), ['c'])
    // One version for each update.
    deepStrictEqual(
      (await server.store.versions('uid')).map(({ version }) => version),
      [4, 2],
    )
    await client.close()
  }))

test('an update with checkpoints does not start on a state that is too large for them, and one with a journal does', t =>
  withStateServer(
    async server => {
      const { client, start } = await openRun(t, server, '3.100.0')
      await client.writePulumiState(stateOf(...Array.from({ length: 40 }, (_, index) => `a${index}`)))
      await rejects(start(), /413 the state is too large for a CLI that sends it as a whole/)
      await client.unlock()
      const journaled = await openRun(t, server, '3.260.0')
      const update = await journaled.start()
      equal(await update('PATCH', 'journalentries', batch(begin(1, 'b'))), 409)
      equal(await update('PATCH', 'journalentries', batch(removed(2, 0))), 200)
      equal(await update('POST', 'complete', complete), 200)
      equal((await journaled.current())?.length, 39)
      await Promise.all([client.close(), journaled.client.close()])
    },
    { limits: { maxBytes: 3_000 } },
  ))

test('entries that arrive after their update completed are an orphan, and the next update continues', t =>
  withStateServer(async server => {
    const { client, stops, errors, start, orphans, current } = await openRun(t, server, '3.260.0')
    const update = await start()
    equal(await update('PATCH', 'journalentries', batch(created(1, 'a'))), 200)
    equal(await update('POST', 'complete', complete), 200)
    const next = await start()
    equal(await next('PATCH', 'journalentries', batch(created(1, 'b'))), 200)
    equal(await update('PATCH', 'journalentries', batch(created(2, 'late'))), 403)
    deepStrictEqual(await orphans(), [['pulumi-journal', 'UpdateEnded', 'run-1']])
    equal(await next('PATCH', 'journalentries', batch(created(2, 'c'))), 200)
    equal(await next('POST', 'complete', complete), 200)
    deepStrictEqual((await current())?.toSorted(), ['a', 'b', 'c'])
    deepStrictEqual([stops, errors], [[], []])
    await client.close()
  }))

test('what a Run keeps after it lost its lock or its epoch is an orphan, and stops nothing', t =>
  withStateServer(async server => {
    const { client, stops, errors, start, orphans, current } = await openRun(t, server, '3.260.0')
    const update = await start()
    equal(await update('PATCH', 'journalentries', batch(created(1, 'a'))), 200)
    equal(await update('POST', 'complete', complete), 200)
    await client.unlock()
    const other = clientOf(server, 2)
    await other.lock()
    await other.writePulumiState(stateOf('a', 'new'))
    equal(await update('PATCH', 'journalentries', batch(created(2, 'late'))), 403)
    deepStrictEqual(await orphans(), [['pulumi-journal', 'UpdateEnded', 'run-1']])
    deepStrictEqual([namesIn((await other.readPulumiState())?.bytes), stops, errors], [['a', 'new'], [], []])
    equal((await current())?.length, 2)
    await Promise.all([client.close(), other.close()])
  }))
