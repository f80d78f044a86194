import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../../kubernetes/client/index.ts'
import { batch, begin, created, resource, stateOf } from '../../../stores/state/pulumi-journal.testing.ts'
import { clientOf, withStateServer } from '../../../stores/state/state-server.testing.ts'
import { StoredState, sizeOf } from './stored-state.ts'

test('what an open journal results in counts as large, and is not read above 16 MiB, however small the journal is', async () => {
  await withStateServer(async server => {
    const client = await createClient({ cluster: { server: server.url, token: 'user' } })
    const state = new StoredState({ client, namespace: 'prod', name: 'net' })
    await state.write('pulumi', 'ann', 'a test', async () => stateOf('a').toString())
    const [small] = await state.versions()
    equal(sizeOf(small, undefined), stateOf('a').length)
    const large = { version: 3, deployment: { resources: [resource('b', { outputs: { text: 'x'.repeat(17 * 1024 * 1024) } })] } }
    await state.write('pulumi', 'ann', 'a test', async () => JSON.stringify(large))
    const run = clientOf(server, 1)
    await run.lock()
    await run.appendJournal(1, batch(begin(1, 'c'), created(2, 'c', { operationID: 1 })), { cliVersion: '3.260.0' })
    const [journal] = await state.versions()
    deepEqual([sizeOf(journal), (journal?.size ?? 0) < 1_000], [Number.POSITIVE_INFINITY, true])
    await rejects(state.read(journal!), { code: 400, message: /the console reads at most 16777216: use "oarlock state pull"/ })
    await client.close()
  })
})
