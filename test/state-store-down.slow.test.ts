/** The last version of a state, while the state store is unavailable until the worker has exited. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { eventually } from './support/eventually.ts'
import { createWorkerHarness, shell } from './support/worker-harness.ts'

const harness = createWorkerHarness()

/** A state store that stores plans and configurations, and rejects every version until it is available. Creates the file `rejected` when it has rejected one. */
async function startStore(t: TestContext, rejected: string) {
  let isAvailable = false
  const answer = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (!isAvailable && incoming.method === 'PUT' && !/\/(diff|configuration)$/.test(incoming.url ?? '')) {
      incoming.resume().on('end', () => {
        writeFileSync(rejected, '')
        // A worker does not retry this for a minute, as it would if nothing answered.
        response.writeHead(500).end('{"error":{"code":"Corrupt","message":"the database is damaged"}}')
      })
      return
    }
    const { server } = harness.fixture
    const { method, headers } = incoming
    const forwarded = request(new URL(incoming.url ?? '', server.url), { method, headers, ca: server.caCertificate }, received => {
      response.writeHead(received.statusCode ?? 500, received.headers)
      received.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    incoming.pipe(forwarded)
  }
  const store = createServer(answer)
  await new Promise<void>(resolve => store.listen(0, '127.0.0.1', resolve))
  t.after(() => store.close())
  const becomeAvailable = () => {
    isAvailable = true
  }
  return { storeUrl: `http://127.0.0.1:${(store.address() as AddressInfo).port}`, becomeAvailable }
}

describe('a version that could not be stored is kept', { concurrency: 3 }, () => {
  for (const [left, rest] of [
    ['an empty file', ''],
    ['an incomplete file', '{"serial":2,'],
    ['no file', undefined],
  ] as const) {
    test(`although the engine left ${left} after it`, async t => {
      const rejected = harness.newPath()
      const { storeUrl, becomeAvailable } = await startStore(t, rejected)
      const leave = rest === undefined ? 'rm $OARLOCK_STATE' : `printf %s '${rest}' > $OARLOCK_STATE`
      const apply = shell(`printf %s '{"serial":1}' > $OARLOCK_STATE; until [ -e ${rejected} ]; do sleep 0.02; done; ${leave}; exit 1`)
      const { run } = await harness.execute(t, { stack: { command: { apply } } }, { storeUrl })
      equal(run.status?.phase, 'Failed')
      const { name } = run.spec.stackRef
      match(
        run.status?.message ?? '',
        new RegExp(`; its last state becomes an orphaned version when the store accepts it: oarlock state versions ${name} -n apps$`),
      )
      becomeAvailable()
      const expected = rest ? ['{"serial":1}', rest] : ['{"serial":1}']
      const stackUid = run.spec.stackRef.uid
      const orphans = await eventually(async () => {
        const found = await harness.fixture.states.orphans(stackUid)
        return found.length === expected.length && found
      }, 'the last version to be stored')
      const oldestFirst = orphans.sort((a, b) => a.version - b.version)
      const read = async (version: number) => (await harness.fixture.states.readVersion({ stackUid, version }))?.bytes.toString()
      deepEqual(await Promise.all(oldestFirst.map(({ version }) => read(version))), expected)
      deepEqual(
        oldestFirst.map(({ reason }) => reason),
        rest ? ['RunEnded', 'Incomplete'] : ['RunEnded'],
      )
      await eventually(() => !existsSync(join(harness.runsDir, run.metadata.uid)), 'the directory of the Run to be removed')
    })
  }
})
