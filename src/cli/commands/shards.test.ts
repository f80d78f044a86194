import { deepEqual, equal, match } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { stackResource, stackShardsName, systemNamespace } from '../../api/index.ts'
import { configMapResource, type LeaseBody, leaseResource, namespaceResource } from '../../kubernetes/client/index.ts'
import { bucketLabel, bucketOf, type ShardView } from '../../kubernetes/controller/index.ts'
import { startTestServer } from '../../kubernetes/testing/index.ts'
import { ownerLine, shardLines, shardsReport } from './shards.ts'

const launcher = join(import.meta.dirname, '../../../bin/oarlock.js')
const uid = '0b6a1d5e-3c1f-4a55-9d2e-6f1f3f0c7a11'
const bucket = bucketOf(uid)

/** This long after the last renewal of the member in slot 0. */
const atMs = (seconds: number) => Date.parse('2026-01-01T00:00:00Z') + seconds * 1_000

/** Slot 0 holds all buckets but that of `uid`, which it must give to slot 1. */
function viewWith(changes: { holder?: 0 | undefined; isLeaving?: boolean } = { holder: 0 }): ShardView {
  const rest = Array.from({ length: 1_024 }, (_, index) => index).filter(index => index !== bucket)
  const held = changes.holder === 0 ? [...rest, bucket].sort((a, b) => a - b) : rest
  const of15s = { leaseDurationMs: 15_000 }
  const members: ShardView['members'] = [
    {
      slot: 0,
      session: 'a_1.1',
      isLeaving: changes.isLeaving ?? false,
      renewTime: '2026-01-01T00:00:00.000000Z',
      ...of15s,
      buckets: held,
      gaining: [],
      losing: [],
    },
    { slot: 1, session: 'b_2.1', isLeaving: false, renewTime: undefined, ...of15s, buckets: [], gaining: [bucket], losing: [] },
    { slot: 2, session: undefined, isLeaving: false, renewTime: '2026-01-01T00:00:00Z', ...of15s, buckets: [], gaining: [], losing: [] },
  ]
  return {
    version: 7,
    fence: 123,
    members,
    ownerOf: of => members.find(({ buckets }) => buckets.includes(of)),
  }
}

test('the table has the age of each renewal, vacant slots and buckets that move', () => {
  const nowMs = atMs(3.4)
  deepEqual(shardLines(viewWith(), { ring: 'r', ringNamespace: 'ns', isWide: false, nowMs }), [
    'ring r in ns: version 7, fence 123, 2 members, 1024 of 1024 buckets held, 1 moving',
    'SLOT   MEMBER   STATE    RENEWED   BUCKETS   GAINING   LOSING',
    '0      a_1.1    Active   3s ago    1024      0         0',
    '1      b_2.1    Moving   -         0         1         0',
    '2      <none>   Vacant   -         0         0         0',
  ])
  const [, , wide] = shardLines(viewWith({ isLeaving: true }), { ring: 'r', ringNamespace: 'ns', isWide: true, nowMs })
  equal(wide, `0      a_1.1    Leaving   3s ago    1023      0         0        0-${bucket - 1},${bucket + 1}-1023`)
})

test('the owner of a key is the holder of its bucket, and the line reports a bucket that moves or is held by no member', () => {
  const stack = { kind: 'Stack', namespace: 'shop', name: 'app', uid, bucket, bucketFrom: 'root' } as const
  equal(
    ownerLine(viewWith(), stack, atMs(3)),
    `stack shop/app (uid ${uid}) is in bucket ${bucket}, held by a_1.1 in slot 0; it moves to b_2.1 in slot 1`,
  )
  match(
    ownerLine(viewWith({}), { uid, bucket, bucketFrom: 'uid' }, atMs(3)),
    /^uid 0b6a1d5e-.*, if it is the root of a controller of this ring, is in bucket \d+, held by no member at this moment; it moves to b_2\.1 in slot 1$/,
  )
})

test('a member that has not renewed its Lease is Late after its renew deadline, and Expired after the duration: its buckets count as held by no member', () => {
  const stack = { kind: 'Stack', namespace: 'shop', name: 'app', uid, bucket, bucketFrom: 'root' } as const
  const at = { ring: 'r', ringNamespace: 'ns', isWide: false }
  const late = shardLines(viewWith(), { ...at, nowMs: atMs(12) })
  match(late[0]!, /2 members, 1024 of 1024 buckets held/)
  match(late[2]!, /^0 +a_1\.1 +Late +12s ago +1024/)
  match(
    ownerLine(viewWith(), stack, atMs(12)),
    /, assigned to a_1\.1 in slot 0, which renewed its Lease 12s ago: no process works on it; it moves/,
  )
  const expired = shardLines(viewWith(), { ...at, nowMs: atMs(40) })
  match(expired[0]!, /1 member, 0 of 1024 buckets held, 1 moving/)
  match(expired[2]!, /^0 +a_1\.1 +Expired +40s ago +1024/)
  const report = shardsReport(viewWith(), { ring: 'r', ringNamespace: 'ns', nowMs: atMs(40) })
  deepEqual(
    report.members.map(({ state }) => state),
    ['Expired', 'Moving', 'Vacant'],
  )
})

test('the buckets of a vacant slot count as held by no member', () => {
  const view = viewWith()
  const members = view.members.map(member => ({ ...member, session: undefined, gaining: [] }))
  const stopped = { ...view, members, ownerOf: () => members[0] }
  const [summary] = shardLines(stopped, { ring: 'r', ringNamespace: 'ns', isWide: false, nowMs: atMs(3) })
  equal(summary, 'ring r in ns: version 7, fence 123, 0 members, 0 of 1024 buckets held, 0 moving')
  match(ownerLine(stopped, { uid, bucket, bucketFrom: 'uid' }, atMs(3)), /, assigned to the vacant slot 0: no process works on it$/)
})

test('oarlock shards prints the ring, and the bucket and owner of a Stack by its name, its namespace or its UID', async t => {
  await using api = await startTestServer({ kinds: [stackResource] })
  const { client } = api
  const oarlock = async (...args: string[]) => {
    const child = spawn(process.execPath, [launcher, 'shards', '--kubeconfig', api.server.kubeconfigPath, ...args], {
      env: { ...process.env, NO_COLOR: '1' },
    })
    const result = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', text => (result.stdout += text))
    child.stderr.setEncoding('utf8').on('data', text => (result.stderr += text))
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, ...result }
  }
  await client.resource(namespaceResource).apply({ metadata: { name: systemNamespace } }, { force: true })
  await client.resource(namespaceResource).apply({ metadata: { name: 'shop' } }, { force: true })
  await t.test('without a ring it exits with 3 and refers to --shards', async () => {
    const { code, stderr, stdout } = await oarlock()
    equal(code, 3)
    equal(stdout, '')
    match(
      stderr,
      /no ring "oarlock-stacks" in namespace oarlock-system: no controllers share keys under this name\n {2}hint: start several/,
    )
    const other = await oarlock('--ring', 'kyma', '--ring-namespace', 'shop')
    match(other.stderr, /no ring "kyma" in namespace shop[^\n]*\n {2}hint: --ring and --ring-namespace are `shards\.name`/)
  })
  const at = { namespace: 'shop' }
  const spec = { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] } } as const
  const stack = await client
    .resource(stackResource)
    .create({ metadata: { name: 'app', ...at }, spec: { ...spec, command: { apply: ['true'] } } })
  const own = bucketOf(stack.metadata.uid)
  const holders = Array.from({ length: 1_024 }, (_, index) => (index === own ? '1' : '0')).join('')
  const member = (session: string) => ({ session, uid: 'u', since: 1 })
  const ring = JSON.stringify({ version: 4, members: { 0: member('a_1.1'), 1: member('b_2.1') }, holders })
  const lease = async (name: string, spec: LeaseBody['spec'], annotations: Record<string, string> = {}) => {
    const labels = { 'sharding.oarlock.dev/ring': stackShardsName }
    await client.resource(leaseResource).create({ metadata: { name, namespace: systemNamespace, labels, annotations }, spec })
  }
  await lease(`${stackShardsName}-ring`, {}, { 'sharding.oarlock.dev/ring': ring })
  await lease(`${stackShardsName}-0`, { holderIdentity: 'a_1.1', renewTime: '2026-01-01T00:00:00.000000Z' })
  await lease(`${stackShardsName}-1`, { holderIdentity: 'b_2.1' })
  const owner = new RegExp(`stack shop/app \\(uid ${stack.metadata.uid}\\) is in bucket ${own}, held by b_2\\.1 in slot 1\\n$`)
  for (const args of [['shop/app'], ['app', '-n', 'shop'], ['stack/app', '-n', 'shop'], ['stacks.oarlock.dev/app', '-n', 'shop']]) {
    await t.test(`finds the Stack by ${args.join(' ')}`, async () => {
      const { code, stdout } = await oarlock(...args)
      equal(code, 0)
      match(stdout, /^ring oarlock-stacks in oarlock-system: version 4, fence \d+, 2 members, 1024 of 1024 buckets held, 0 moving\n/)
      match(stdout, owner)
    })
  }
  await t.test(
    'the owner of an owned object is that of the bucket in its label; without a label the line says when it does not apply',
    async () => {
      const configMaps = client.resource(configMapResource)
      const labels = { [bucketLabel]: String(own) }
      // By its UID it would be in another bucket, once in 1,024 times in the same.
      await configMaps.create({ metadata: { name: 'owned', ...at, labels } })
      match((await oarlock('configmap/owned', '-n', 'shop')).stdout, new RegExp(`is in bucket ${own}, held by b_2\\.1 in slot 1\\n$`))
      const { metadata: other } = await configMaps.create({ metadata: { name: 'other', ...at } })
      match(
        (await oarlock('configmap/other', '-n', 'shop')).stdout,
        new RegExp(`, if it is the root of a controller of this ring, is in bucket ${bucketOf(other.uid)}, held by `),
      )
    },
  )
  await t.test('an owned object without a bucket label is not seen by the controller that owns it', async () => {
    const ownerReferences = [{ apiVersion: 'example.dev/v1', kind: 'Boat', name: 'b1', uid, controller: true }]
    await client.resource(configMapResource).create({ metadata: { name: 'unlabeled', ...at, ownerReferences } })
    const { code, stdout } = await oarlock('configmap/unlabeled', '-n', 'shop')
    equal(code, 0)
    match(
      stdout,
      /is controlled by Boat\/b1 and has no label sharding\.oarlock\.dev\/bucket: a sharded controller that owns it does not see it; if it is/,
    )
    const { key } = JSON.parse((await oarlock('configmap/unlabeled', '-n', 'shop', '-o', 'json')).stdout)
    equal(key.controlledBy, 'Boat/b1')
    equal(key.bucketFrom, 'uid')
  })
  await t.test('what a Stack owns has the bucket of the Stack without a label in the ring of Stacks', async () => {
    const { uid } = stack.metadata
    const ownerReferences = [{ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', name: 'app', uid, controller: true }]
    await client.resource(configMapResource).create({ metadata: { name: 'of-stack', ...at, ownerReferences } })
    match((await oarlock('configmap/of-stack', '-n', 'shop')).stdout, new RegExp(`\\) is in bucket ${own}, held by b_2\\.1 in slot 1\\n$`))
  })
  await t.test('-o json has the buckets of each member, and the key with its owner', async () => {
    const { code, stdout } = await oarlock(stack.metadata.uid, '-o', 'json')
    equal(code, 0)
    const { key, members, version } = JSON.parse(stdout)
    deepEqual(key, { uid: stack.metadata.uid, bucket: own, bucketFrom: 'uid', owner: { slot: 1, session: 'b_2.1' } })
    deepEqual(
      members.map(({ session, buckets }: { session: string; buckets: number[] }) => [session, buckets.length]),
      [
        ['a_1.1', 1_023],
        ['b_2.1', 1],
      ],
    )
    equal(version, 4)
  })
  await t.test('NAMESPACE/NAME of another kind exits with 3 and the hint to name the type', async () => {
    const { code, stderr } = await oarlock('shop/b7', '--ring', 'berths')
    equal(code, 3)
    match(
      stderr,
      /shop\/b7 names a Stack, and there is no stack "b7" in namespace shop\n {2}hint: for an object of another kind: "oarlock shards TYPE\/b7 -n shop"/,
    )
  })
  await t.test('a ring that does not exist exits with 3 and the rings that do', async () => {
    const { code, stderr } = await oarlock('--ring', 'berths', '--ring-namespace', 'shop')
    equal(code, 3)
    match(stderr, /no ring "berths" in namespace shop[\s\S]*existing rings: --ring oarlock-stacks --ring-namespace oarlock-system\n/)
  })
  await t.test('a Stack that does not exist exits with 3, an incomplete key with 2', async () => {
    const missing = await oarlock('shop/ap')
    equal(missing.code, 3)
    match(missing.stderr, /stack "ap" not found in namespace shop/)
    const incomplete = await oarlock('shop/')
    equal(incomplete.code, 2)
    match(incomplete.stderr, /invalid key "shop\/"\n {2}hint: use NAMESPACE\/NAME/)
    const long = await oarlock('shop/stack/app')
    equal(long.code, 2)
    match(long.stderr, /invalid key "shop\/stack\/app"\n {2}hint: use NAMESPACE\/NAME/)
  })
})

test('on a server without Stacks, NAMESPACE/NAME exits with 3 and the hint to name the type', async () => {
  await using api = await startTestServer()
  const child = spawn(process.execPath, [launcher, 'shards', '--kubeconfig', api.server.kubeconfigPath, 'default/b7', '--ring', 'berths'], {
    env: { ...process.env, NO_COLOR: '1' },
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', text => (stderr += text))
  const [code] = await once(child, 'close')
  equal(code, 3)
  match(stderr, /default\/b7 names a Stack, and there is no stack "b7" in namespace default\n {2}hint: [^\n]*TYPE\/b7 -n default/)
})
