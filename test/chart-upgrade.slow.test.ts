/**
 * From the first version of the chart whose worker Pods have tokens of their own to this one and back, while Stacks are being applied. Workers of earlier
 * charts lose their credential when the controllers are upgraded, and with it what they have not saved: docs/install-kubernetes.md has them drained first.
 */
import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { crdRevision, crdRevisionAnnotation } from '../src/app/controllers/install.ts'
import { Cluster } from './cluster/cluster.ts'
import { helmMissing, Installation, waitTimeout } from './cluster/installation.ts'
import { buildImageOfCommit, buildOarlockImage, imageMissing, imageOfCommit, oarlockImage } from './cluster/oarlock-image.ts'
import { clusterMissing } from './cluster/programs.ts'
import { ClusterFaults } from './support/cluster-faults.ts'

const root = join(import.meta.dirname, '..')
const git = (...args: string[]) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
const historyMissing = () =>
  git('rev-parse', '--is-shallow-repository') === 'true'
    ? 'the clone has no history, which the earlier version of the chart is in'
    : undefined
const skip = clusterMissing() ?? imageMissing() ?? helmMissing() ?? historyMissing() ?? false

test('an upgrade from the first chart with tokens of Pods and a rollback lose no resource, and create none again', {
  skip,
  timeout: 1_800_000,
}, async t => {
  const first = git('log', '--diff-filter=A', '--format=%H', '--', 'src/app/worker/pod-access.ts').split('\n').at(-1) as string
  const cluster = await Cluster.start({ nodes: 2, images: [buildImageOfCommit(first), buildOarlockImage()] })
  const installation = new Installation(cluster)
  const faults = new ClusterFaults(cluster, installation)
  try {
    execFileSync('sh', ['-c', 'git archive "$0" charts/oarlock | tar -x -C "$1"', first, installation.directory], { cwd: root })
    const revision = async () => {
      const path = `jsonpath={.metadata.annotations.${crdRevisionAnnotation.replaceAll('.', '\\.')}}`
      return await installation.kubectl('get', 'crd', 'stacks.oarlock.dev', '-o', path)
    }
    await faults.install(imageOfCommit(first), { chart: join(installation.directory, 'charts/oarlock') })
    const before = await revision()

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
      await faults.install(oarlockImage, { command: 'upgrade' })
      notEqual(await revision(), before)
      equal(await revision(), String(crdRevision))
      await later('a', 2)
      await installation.helm('rollback', 'oarlock', '1', '--wait', `--timeout=${waitTimeout}`)
      await later('a', 2)
    } finally {
      isDone = true
    }
    await load
    let interrupted = 0
    for (const [name, last] of generations)
      for (let generation = 1; generation <= last; generation++) {
        const { again, lost, runs } = faults.count(name, generation, Number.POSITIVE_INFINITY)
        deepEqual({ name, generation, again, lost }, { name, generation, again: 0, lost: 0 })
        if (runs > 1) interrupted++
      }
    deepEqual(installation.locks(), [])
    t.diagnostic(
      `from CRDs of revision ${before} to ${crdRevision}; applies: ${JSON.stringify([...generations])}, interrupted: ${interrupted}`,
    )
  } finally {
    await cluster.close()
    installation.remove()
  }
})
