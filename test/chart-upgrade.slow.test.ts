/**
 * From earlier charts to this one and back, by the line of docs/install-kubernetes.md, with the values of the installation. From the first chart whose worker Pods have
 * tokens of their own (24 November 2026) while Stacks are being applied. From the first chart of all (23 November) between two applies, as the page requires: its worker Pods
 * have credentials from Secrets in `oarlock-workers` and the role `oarlock:worker-inputs`, both of which the newer controllers and roles take away. An apply that is in progress then
 * loses them, and with them the resources that it has not saved, so it cannot hold what the other test asserts. Nothing else of that chart prevents an upgrade: its image is built, its values are
 * valid for this chart, selectors and volumes are the same, and the format of the states is.
 */
import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { workerPoolResource, workerResource } from '../src/api/index.ts'
import { crdRevision, crdRevisionAnnotation } from '../src/app/controllers/install.ts'
import { Cluster } from './cluster/cluster.ts'
import { helmMissing, Installation, waitTimeout } from './cluster/installation.ts'
import { buildImageOfCommit, buildOarlockImage, imageMissing, imageOfCommit, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'
import { ClusterFaults } from './support/cluster-faults.ts'
import { eventually } from './support/eventually.ts'

const root = join(import.meta.dirname, '..')
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const historyMissing = () =>
  git('rev-parse', '--is-shallow-repository') === 'true'
    ? 'the clone has no history, which the earlier version of the chart is in'
    : undefined
const skip = clusterMissing() ?? imageMissing() ?? helmMissing() ?? historyMissing() ?? false

const crdRevisionOf = async (installation: Installation) => {
  const path = `jsonpath={.metadata.annotations.${crdRevisionAnnotation.replaceAll('.', '\\.')}}`
  return await installation.kubectl('get', 'crd', 'stacks.oarlock.dev', '-o', path)
}

/** The commit that added a file. */
const commitThatAdded = (path: string) => git('log', '--diff-filter=A', '--format=%H', '--', path).split('\n').at(-1) as string

/** Installs the chart and the image of a commit, and calls `check`. */
async function withChartOf(commit: string, check: (faults: ClusterFaults) => Promise<void>): Promise<void> {
  const cluster = await Cluster.start({ nodes: 2, images: [buildImageOfCommit(commit), buildOarlockImage()] })
  const installation = new Installation(cluster)
  const faults = new ClusterFaults(cluster, installation)
  try {
    execFileSync('sh', ['-c', 'git archive "$0" charts/oarlock | tar -x -C "$1"', commit, installation.directory], { cwd: root })
    await faults.install(imageOfCommit(commit), { chart: join(installation.directory, 'charts/oarlock') })
    await check(faults)
  } finally {
    await cluster.close()
    installation.remove()
  }
}

const rollback = async (installation: Installation) =>
  await installation.helm('rollback', 'oarlock', '1', '--wait', `--timeout=${waitTimeout}`)

/** Of all resources of a generation, how many were created again, or never. */
function assertIntact(faults: ClusterFaults, name: string, generation: number): number {
  const { again, lost, runs } = faults.count(name, generation, Number.POSITIVE_INFINITY)
  deepEqual({ name, generation, again, lost }, { name, generation, again: 0, lost: 0 })
  return runs
}

test('an upgrade from the first chart with tokens of Pods and a rollback lose no resource, and create none again', {
  skip,
  timeout: 1_800_000,
}, async t => {
  await withChartOf(commitThatAdded('src/app/worker/pod-access.ts'), async faults => {
    const { installation } = faults
    const before = await crdRevisionOf(installation)
    let isDone = false
    const generations = new Map<string, number>()
    /** Changes the Stack as soon as it is Ready. */
    const applyAgainAndAgain = async (name: string) => {
      for (let generation = 1; !isDone; generation++) {
        generations.set(name, generation)
        await faults.applyStack(name, generation)
        await faults.inProgress(name, generation, 1)
        await faults.untilReady(name)
      }
    }
    const load = Promise.all(['a', 'b'].map(applyAgainAndAgain))
    const later = async (name: string, more: number) => {
      const target = (generations.get(name) ?? 0) + more
      while ((generations.get(name) ?? 0) < target && !isDone) await Promise.race([load, new Promise(resolve => setTimeout(resolve, 200))])
    }
    try {
      await later('a', 1)
      await faults.upgrade(oarlockImage)
      notEqual(await crdRevisionOf(installation), before)
      equal(await crdRevisionOf(installation), String(crdRevision))
      await later('a', 2)
      await rollback(installation)
      await later('a', 2)
    } finally {
      isDone = true
    }
    await load
    let interrupted = 0
    for (const [name, last] of generations)
      for (let generation = 1; generation <= last; generation++) if (assertIntact(faults, name, generation) > 1) interrupted++
    deepEqual(installation.locks(), [])
    t.diagnostic(
      `from CRDs of revision ${before} to ${crdRevision}; applies: ${JSON.stringify([...generations])}, interrupted: ${interrupted}`,
    )
  })
})

test('an upgrade from the first chart of all and a rollback, each without a Run in progress, continue with the states', {
  skip,
  timeout: 1_800_000,
}, async t => {
  await withChartOf(commitThatAdded('charts/oarlock/Chart.yaml'), async faults => {
    const { installation } = faults
    const before = await crdRevisionOf(installation)
    const apply = async (generation: number) => {
      await faults.applyStack('a', generation)
      // The one before may still be Ready.
      await faults.inProgress('a', generation, 1)
      await faults.untilReady('a')
      // OneShot: each ends after its Run.
      const workers = faults.cluster.client.resource(workerResource)
      await eventually(async () => (await workers.listAll()).items.length === 0, 'all workers to end', 240_000)
    }
    await apply(1)
    await faults.upgrade(oarlockImage)
    notEqual(await crdRevisionOf(installation), before)
    equal(await crdRevisionOf(installation), String(crdRevision))
    const { spec } = await faults.cluster.client.resource(workerPoolResource).get('default')
    deepEqual({ lifecycle: spec.lifecycle, min: spec.min, max: spec.max }, { lifecycle: 'OneShot', min: 0, max: 4 })
    await faults.untilReady('a')
    await apply(2)
    await rollback(installation)
    await apply(3)
    // One Run each: nothing was repeated after the upgrade.
    for (const generation of [1, 2, 3]) equal(assertIntact(faults, 'a', generation), 1)
    deepEqual(installation.locks(), [])
    t.diagnostic(`from CRDs of revision ${before} to ${crdRevision}`)
  })
})
