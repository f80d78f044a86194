/** kill -9 of worker Pods, of the leading controller and of kubelets at random times during applies, on a real cluster with the chart. */
import { Cluster } from '../../test/cluster/cluster.ts'
import { helmMissing, Installation } from '../../test/cluster/installation.ts'
import { buildOarlockImage, imageMissing, oarlockImage } from '../../test/cluster/oarlock-image.ts'
import { clusterMissing } from '../../test/cluster/programs.ts'
import { ClusterFaults, type FaultOutcome } from '../../test/support/cluster-faults.ts'
import type { Bench } from '../run.ts'
import { argument, spread } from './chain.ts'

const victims = ['worker', 'leader', 'kubelet'] as const

/** `--times N` for each victim (default 10), `--what worker|leader|kubelet` for one of them. */
export async function bench(args: string[]): Promise<Bench> {
  const missing = clusterMissing() ?? imageMissing() ?? helmMissing()
  if (missing) throw new Error(missing)
  const times = Number(argument(args, 'times', '10'))
  const only = argument(args, 'what', '')
  const selected = victims.filter(each => only === '' || each === only)
  if (selected.length === 0) throw new Error(`--what is ${only}, allowed: ${victims.join(', ')}`)
  const cluster = await Cluster.start({ nodes: 2, images: [buildOarlockImage()] })
  const installation = new Installation(cluster)
  try {
    const faults = new ClusterFaults(cluster, installation)
    await faults.install(oarlockImage)
    const rows: Record<string, string | number>[] = []
    let failed = false
    for (const what of selected) {
      const outcomes: FaultOutcome[] = []
      let locks = 0
      for (let i = 0; i < times; i++) {
        // At a random resource of the apply; each Stack is changed in the next round, so that its state of the last one is used.
        outcomes.push(await faults.trial(`${what}-${i % 2}`, 1 + Math.floor(i / 2), what, 1 + Math.floor(Math.random() * 4)))
        locks += installation.locks().length
        process.stderr.write(`\r${what} ${i + 1}/${times} `)
      }
      const sum = (key: 'again' | 'lost') => outcomes.reduce((total, { counts }) => total + counts[key], 0)
      const [recovered, ready] = [
        spread(outcomes.map(each => each.recoveredMs / 1_000)),
        spread(outcomes.map(each => each.readyMs / 1_000)),
      ]
      failed ||= locks + sum('again') + sum('lost') > 0
      rows.push({
        killed: what,
        times,
        'recovered p50 s': recovered.p50,
        'recovered max s': recovered.max,
        'Ready p50 s': ready.p50,
        'Ready max s': ready.max,
        again: sum('again'),
        lost: sum('lost'),
        'locks left': locks,
        'Runs interrupted': outcomes.filter(({ counts }) => counts.runs > 1).length,
      })
    }
    return {
      title: `kill -9 at ${times} random times during applies in worker Pods on a real cluster`,
      about:
        'Seconds from the kill. Recovered: the next Run executes (worker), another controller leads (leader), the kubelet, started again after 3 s, reports its node (kubelet). "again": resources completed 1 s before the kill that were created again; "lost": resources never created (bar: 0 for both and for locks).',
      rows,
      failed,
    }
  } finally {
    await cluster.close()
    installation.remove()
  }
}
