/** A server that was paused while another data directory took the place of its own removes no claim when it continues. Each server is a process of `oarlock`. */
import { deepEqual, match } from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Installation } from '../examples/partitions/installation.ts'
import { defaultRemoveAfterMs } from '../src/controllers/claims/index.ts'
import { nameClaimResource } from '../src/gateway/index.ts'
import { type Client, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

describe('a server whose data directory was replaced', { timeout: 240_000 }, () => {
  const fixture = new PartitionsFixture()
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1'], tenants: { acme: 't1' } }))
  })
  after(() => fixture.stop())

  test('ends when it continues, and the claims of its successor stay', async () => {
    const former = installation.role('t1')
    former.signal('SIGSTOP')
    const serve = ['serve', '--partition', 't1.partition.json', '--data', 'successor', '--listen', '127.0.0.1:0', '--replace-data']
    await installation.add('successor', serve).until(/^ready: /m)
    const metadata = { name: 'newer', labels: { 'oarlock.dev/tenant': 'acme' } }
    await eventually(
      async () =>
        await client
          .resource(namespaceResource)
          .create({ metadata })
          .catch(() => undefined),
      'the successor to have a namespace',
      30_000,
    )
    const claims = async () => (await client.resource(nameClaimResource).listAll({})).items.map(each => each.metadata.name).sort()
    const before = await claims()
    await sleep(defaultRemoveAfterMs + 5_000)
    former.signal('SIGCONT')
    await eventually(() => !former.isRunning, 'the former server to end', 30_000)
    match(former.output(), /the objects of partition "t1" are in the data directory of the server at/)
    deepEqual(await claims(), before)
  })
})
