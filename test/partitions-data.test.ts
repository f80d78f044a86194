/** Which data directory is that of a partition: servers with another one are rejected, a restored one is accepted. Each server is a process of `oarlock`. */
import { deepEqual, equal, match, notEqual } from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Installation } from '../examples/partitions/installation.ts'
import { nameClaimResource, partitionResource } from '../src/gateway/index.ts'
import { type Client, configMapResource, namespaceResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { untilKindsMatch } from './support/gateway/until-kinds-match.ts'
import { PartitionsFixture } from './support/partitions-fixture.ts'

const directoryAnnotation = 'oarlock.dev/data-directory'

describe('the data directory of a partition', { timeout: 240_000 }, () => {
  const fixture = new PartitionsFixture()
  const { directory } = fixture
  let installation: Installation
  let client: Client
  before(async () => {
    ;({ installation, client } = await fixture.start({ tenantPartitions: ['t1'], tenants: { acme: 't1' } }))
    await client.resource(configMapResource).create({ metadata: { namespace: 'acme', name: 'kept' } })
  })
  after(() => fixture.stop())
  const serveT1 = (dataDir: string, ...more: string[]) => [
    'serve',
    '--partition',
    't1.partition.json',
    '--data',
    dataDir,
    '--listen',
    '127.0.0.1:0',
    ...more,
  ]
  const failure = async (...args: string[]) =>
    await installation.run(...args).then(
      () => 'it did not fail',
      error => String(error.stderr),
    )
  const partition = async () => await client.resource(partitionResource).get('t1')
  const claims = async () => {
    const { items } = await client.resource(nameClaimResource).listAll({})
    return items.map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
  }
  const versionOf = async (name: string) => Number((await client.resource(nameClaimResource).get(name)).metadata.resourceVersion)
  const isServed = async () =>
    await eventually(
      async () =>
        await client
          .resource(configMapResource)
          .getOrUndefined('kept', { namespace: 'acme' })
          .catch(() => undefined),
      'the object to be served',
      30_000,
    )
  const restart = async () => {
    const t1 = installation.role('t1')
    t1.restart()
    await t1.until(/^ready: /m)
    await isServed()
  }
  const rejected =
    /the objects of partition "t1" are in the data directory of the server at https:\S+, and \S+ is another one\n {2}hint: .*--replace-data/

  test('a server with another, empty directory is rejected while the partition runs and while it is down', async () => {
    // Its report changes the Partition.
    await untilKindsMatch(client, 't1')
    const before = { claims: await claims(), partition: (await partition()).metadata.resourceVersion }
    match(await failure(...serveT1('empty')), rejected)
    await installation.role('t1').end()
    match(await failure(...serveT1('empty')), rejected)
    equal(existsSync(join(directory, 'empty', 'oarlock.db')), false)
    deepEqual({ claims: await claims(), partition: (await partition()).metadata.resourceVersion }, before)
    await restart()
  })

  test('an empty directory is not served before home confirms it', async () => {
    const home = installation.role('home')
    await home.end()
    const waiting = installation.add('waiting', serveT1('waiting'))
    await waiting.until(/^waiting: home https:\S+ does not answer, and must confirm the new data directory/m)
    equal(existsSync(join(directory, 'waiting', 'oarlock.db')), false)
    home.restart()
    await home.until(/^ready: /m)
    await eventually(() => !waiting.isRunning, 'the second server to end', 30_000)
    match(waiting.output(), rejected)
    await isServed()
  })

  test('the wait for home ends with SIGTERM', async () => {
    const home = installation.role('home')
    await home.end()
    const waiting = installation.add('ended', serveT1('waiting'))
    await waiting.until(/^waiting: /m)
    await waiting.end()
    match(waiting.output(), /^stopped$/m)
    home.restart()
    await home.until(/^ready: /m)
    await isServed()
  })

  test('an address that another one has written is replaced', async () => {
    const { server } = (await partition()).spec
    await client.resource(partitionResource).patch('t1', { spec: { server: 'https://127.0.0.1:1' } } as object, { type: 'merge' })
    await eventually(async () => (await partition()).spec.server === server, 'the address of the server')
    await isServed()
  })

  test('a directory of an earlier version is bound at its next start, and keeps the claims of what it lacks', async () => {
    const t1 = installation.role('t1')
    const claim = { resource: 'namespaces', name: 'elsewhere', partition: 't1' }
    await client.resource(nameClaimResource).create({ metadata: { name: 'elsewhere.namespaces' }, spec: claim })
    await t1.end()
    const file = join(directory, 't1', 'partition.json')
    const { name, number, id } = JSON.parse(readFileSync(file, 'utf8'))
    writeFileSync(file, JSON.stringify({ name, number }))
    const change = { metadata: { annotations: { [directoryAnnotation]: null } } } as object
    await client.resource(partitionResource).patch('t1', change, { type: 'merge' })
    match(await failure(...serveT1('empty')), rejected)
    await restart()
    const bound = (await partition()).metadata.annotations?.[directoryAnnotation]
    const recorded = JSON.parse(readFileSync(file, 'utf8'))
    equal(bound, recorded.id)
    notEqual(bound, id)
    equal((await versionOf('elsewhere.namespaces')) <= recorded.keepClaimsUpTo, true)
    equal((await versionOf('acme.namespaces')) > recorded.keepClaimsUpTo, true)
  })

  test('a restored backup is the directory of the partition, and claims of what it lacks are kept', async () => {
    await installation.run('backup', '--data', 't1', '--objects-only', '--to', 't1.backup')
    await client.resource(namespaceResource).create({ metadata: { name: 'later', labels: { 'oarlock.dev/tenant': 'acme' } } })
    const t1 = installation.role('t1')
    await t1.end()
    const before = await claims()
    await installation.run('restore', 't1.backup', '--data', 'restored', '--keys', 't1/keys')
    const { id } = JSON.parse(readFileSync(join(directory, 't1', 'partition.json'), 'utf8'))
    const restored = installation.add('restored', serveT1('restored'))
    await restored.until(/^ready: /m)
    await isServed()
    equal((await partition()).metadata.annotations?.[directoryAnnotation], id)
    deepEqual(await claims(), before)
    const { keepClaimsUpTo } = JSON.parse(readFileSync(join(directory, 'restored', 'partition.json'), 'utf8'))
    equal((await versionOf('later.namespaces')) <= keepClaimsUpTo, true)
    equal((await versionOf('acme.namespaces')) > keepClaimsUpTo, true)
    await restored.end()
    await restart()
  })

  test('with --replace-data an empty directory becomes that of the partition, and the server of the other one ends', async () => {
    const before = await claims()
    const replacement = installation.add('replacement', serveT1('replacement', '--replace-data'))
    await replacement.until(/^ready: /m)
    const t1 = installation.role('t1')
    await eventually(() => !t1.isRunning, 'the server of the other directory to end', 30_000)
    match(t1.output(), rejected)
    match(await failure(...serveT1('t1')), rejected)
    deepEqual(await claims(), before)
    await replacement.end()
  })
})
