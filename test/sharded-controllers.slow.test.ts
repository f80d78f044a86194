/** Three `oarlock controller --shards 3` processes; the one that leads dispatch is killed, stopped, or ended with Stacks of all three under way. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { controllerFiguresOf, runResource, stackResource, stackShardsName, systemNamespace } from '../src/api/index.ts'
import { type Client, createClient, leaseResource } from '../src/kubernetes/client/index.ts'
import { bucketLabel, bucketOf, readShards } from '../src/kubernetes/controller/index.ts'
import { peerMissing, startPeer } from './conformance/peer.ts'
import { eventually } from './support/eventually.ts'
import { Failover } from './support/failover.ts'
import { makeDataDir, removeDirectory } from './support/oarlock-process.ts'
import { peerKubeconfig } from './support/peer-kubeconfig.ts'
import { RoleProcesses } from './support/role-process.ts'

const signals = ['SIGKILL', 'SIGSTOP', 'SIGTERM'] as const
const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')

async function survives(t: TestContext, client: Client, base: string, kubeconfig: string): Promise<void> {
  const failover = await Failover.start(client, base, kubeconfig, { controllers: 3, isSharded: true })
  try {
    const { members } = await failover.untilShared()
    for (const { buckets } of members) ok(buckets.length > 300 && buckets.length < 380, `${buckets.length} of 1,024 buckets`)
    for (const signal of signals) {
      await t.test(`${signal}: every Stack becomes Ready, no Run is executed twice, the stopped process writes nothing more`, async () => {
        const { duplicates, lateWrites } = await failover.trial(signal, 30)
        deepEqual([duplicates, lateWrites], [0, 0])
      })
    }
    await t.test('each Run has the bucket of its Stack as a label, and several processes have created Runs', async () => {
      const { items: runs } = await client.resource(runResource).listAll({ namespace: 'default' })
      const view = await readShards(client, { name: stackShardsName, namespace: systemNamespace })
      const slots = new Set<number | undefined>()
      for (const { metadata, spec } of runs) {
        equal(metadata.labels?.[bucketLabel], String(bucketOf(spec.stackRef.uid)), metadata.name)
        slots.add(view?.ownerOf(bucketOf(spec.stackRef.uid))?.slot)
      }
      deepEqual([...slots].toSorted(), [0, 1, 2])
      const { holderIdentity } = (await client.resource(leaseResource).get('oarlock-controller', { namespace: systemNamespace })).spec ?? {}
      ok(holderIdentity, 'one process leads dispatch')
    })
    await t.test('each Lease reports the controllers that its holder may run', async () => {
      const leases = client.resource(leaseResource)
      const reported = async (name: string) =>
        controllerFiguresOf(await leases.get(name, { namespace: systemNamespace })).map(figures => figures.name)
      const names = await eventually(
        async () => await Promise.all(['oarlock-controller', ...[0, 1, 2].map(slot => `${stackShardsName}-${slot}`)].map(reported)),
        all => all.every(each => each.length > 0),
      )
      deepEqual(
        names.map(each => each.includes('stack')),
        [false, true, true, true],
      )
    })
  } finally {
    await failover.close()
  }
}

test('three controllers share the Stacks on the embedded server', async t => {
  const base = makeDataDir()
  const roles = new RoleProcesses(base)
  try {
    const api = await roles.start('api', ['serve', '--data', '.', '--listen', '127.0.0.1:0'], /kubeconfig/)
    const kubeconfig = join(api.directory, 'kubeconfig')
    const client = await createClient({ kubeconfig })
    try {
      await survives(t, client, base, readFileSync(kubeconfig, 'utf8'))
      await t.test('oarlock shards names the owner of a Stack, also while no controller runs', async () => {
        const [stack] = (await client.resource(stackResource).listAll({ namespace: 'default' })).items
        const { name, uid } = stack!.metadata
        const { stdout, status } = spawnSync(process.execPath, [launcher, 'shards', `default/${name}`, '--kubeconfig', kubeconfig], {
          encoding: 'utf8',
        })
        equal(status, 0)
        ok(stdout.includes(`stack default/${name} (uid ${uid}) is in bucket ${bucketOf(uid)}, held by `), stdout)
      })
    } finally {
      await client.close()
    }
  } finally {
    await roles.stopAll()
    removeDirectory(base)
  }
})

test('three controllers share the Stacks on a real kube-apiserver', { skip: peerMissing() }, async t => {
  const base = makeDataDir()
  const peer = await startPeer()
  try {
    const client = await createClient({ cluster: { server: peer.url, token: peer.tokens.admin, insecureSkipTlsVerify: true } })
    await survives(t, client, base, peerKubeconfig(peer)).finally(() => client.close())
  } finally {
    await peer.close()
    removeDirectory(base)
  }
})
