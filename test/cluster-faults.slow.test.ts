/** The chart on a real cluster, with faults, restarts and drains in the middle of applies. `npm run bench -- cluster-kills` repeats the kills. */
import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerPoolResource } from '../src/api/index.ts'
import { Cluster } from './cluster/cluster.ts'
import { helmMissing, Installation, waitTimeout } from './cluster/installation.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'
import { ClusterFaults } from './support/cluster-faults.ts'
import { eventually } from './support/eventually.ts'

const skip = clusterMissing() ?? imageMissing() ?? helmMissing() ?? false
/** Short, so that the API server can be away for longer. */
const leaseSeconds = 30
/** Of each fault; `npm run test:slow` has a shorter one for tests that have none. */
const timeout = 900_000
const noFault = { again: 0, lost: 0, runs: 1 }

test('worker Pods finish their Runs whatever happens around them', { skip, timeout: 1_800_000 }, async t => {
  const cluster = await Cluster.start({ nodes: 2, images: [buildOarlockImage()] })
  const installation = new Installation(cluster)
  const faults = new ClusterFaults(cluster, installation)
  const kubectl = installation.kubectl.bind(installation)
  try {
    await faults.install(oarlockImage, { values: { controllers: { workerLeaseDuration: `${leaseSeconds}s` } } })

    for (const what of ['worker', 'leader', 'kubelet'] as const)
      await t.test(`SIGKILL of the ${what} loses no acknowledged resource and no lock`, { timeout }, async t => {
        const { counts, recoveredMs, readyMs } = await faults.trial(what, 1, what)
        t.diagnostic(`dealt with after ${recoveredMs} ms, Ready after ${readyMs} ms, ${counts.runs} Runs`)
        deepEqual(counts, { ...noFault, runs: what === 'worker' ? 2 : 1 })
        deepEqual(installation.locks(), [])
      })

    await t.test('a Pod that is deleted, and a restart of the controllers, let the Run finish', { timeout }, async () => {
      const chain = { resources: 12, seconds: 1 }
      await faults.applyStack('deleted', 1, chain)
      await faults.applyStack('restarted', 1, chain)
      const run = await faults.inProgress('deleted', 1)
      await kubectl('delete', 'pod', run.spec.workerName as string, '-n', 'oarlock-system', '--wait=false')
      await faults.inProgress('restarted', 1)
      const atMs = Date.now()
      await kubectl('rollout', 'restart', 'deployment/oarlock-controllers', '-n', 'oarlock-system')
      for (const name of ['deleted', 'restarted']) {
        await faults.untilReady(name)
        deepEqual(faults.count(name, 1, atMs, chain), noFault)
      }
      await kubectl('rollout', 'status', 'deployment/oarlock-controllers', '-n', 'oarlock-system', `--timeout=${waitTimeout}`)
      deepEqual(installation.locks(), [])
    })

    await t.test('kubectl drain waits for the Run, and an idle Warm worker moves', { timeout }, async () => {
      const { template, namespace } = (await cluster.client.resource(workerPoolResource).get('default')).spec
      // Everything of the test is on n1.
      await kubectl('cordon', 'n2')
      const spec = {
        mode: 'Pod' as const,
        lifecycle: 'Warm' as const,
        min: 1,
        max: 2,
        ...(template && { template }),
        ...(namespace && { namespace }),
      }
      await cluster.client.resource(workerPoolResource).create({ metadata: { name: 'warm' }, spec })
      const warmPods = async () =>
        (
          await kubectl(
            'get',
            'pods',
            '-n',
            'oarlock-system',
            '-l',
            'oarlock.dev/pool=warm',
            '-o',
            'jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.name} {.spec.nodeName}{"\\n"}{end}',
          )
        ).trim()
      await eventually(async () => / n1$/.test(await warmPods()), 'a Warm worker on n1', 240_000)
      const chain = { resources: 30, seconds: 1 }
      await faults.applyStack('drained', 1, chain)
      const run = await faults.inProgress('drained', 1)
      const pod = async (path: string) =>
        await kubectl('get', 'pod', run.spec.workerName as string, '-n', 'oarlock-system', '-o', `jsonpath=${path}`)
      equal(await pod('{.spec.nodeName}'), 'n1')
      equal(await pod('{.metadata.annotations.cluster-autoscaler\\.kubernetes\\.io/safe-to-evict}'), 'false')
      await kubectl('uncordon', 'n2')
      const atMs = Date.now()
      const output = await kubectl('drain', 'n1', '--delete-emptydir-data', `--timeout=${waitTimeout}`)
      const drainedMs = Date.now()
      const lastMs = Math.max(...faults.ledger('drained').map(({ atMs }) => atMs))
      equal(new Set(faults.ledger('drained').map(({ item }) => item)).size, chain.resources, output)
      ok(lastMs > atMs && lastMs < drainedMs, `the last resource was created at ${lastMs}, the drain took from ${atMs} to ${drainedMs}`)
      await faults.untilReady('drained')
      deepEqual(faults.count('drained', 1, atMs, chain), noFault)
      await eventually(async () => / n2$/.test(await warmPods()), 'a Warm worker on n2', 240_000)
      await kubectl('uncordon', 'n1')
      deepEqual(installation.locks(), [])
    })

    for (const seconds of [3, leaseSeconds + 5])
      await t.test(
        `a restart of the API server that takes ${seconds} s ${seconds < leaseSeconds ? 'interrupts no Run' : 'loses nothing'}`,
        { timeout },
        async t => {
          const [name, chain] = [`api-${seconds}`, { resources: 40, seconds: 1 }]
          await faults.applyStack(name, 1, chain)
          await faults.inProgress(name, 1)
          const server = cluster.controlPlane.program('kube-apiserver')
          const atMs = Date.now()
          await server.kill()
          await sleep(seconds * 1_000)
          server.restart()
          await server.ready(async () => (await kubectl('get', '--raw', '/readyz')) === 'ok')
          t.diagnostic(`the API server was away for ${Date.now() - atMs} ms`)
          await faults.untilReady(name)
          const counts = faults.count(name, 1, atMs, chain)
          t.diagnostic(`${counts.runs} Runs`)
          deepEqual(counts, { ...noFault, runs: seconds < leaseSeconds ? 1 : 2 })
          deepEqual(installation.locks(), [])
        },
      )
  } finally {
    await cluster.close()
    installation.remove()
  }
})
