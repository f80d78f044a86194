/** SIGSTOP of workers for longer than their Lease, alone and together with supervisor and engine, during real terraform applies. */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runResource, stackResource, workerResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import type { OrphanInfo, VersionInfo } from '../../src/stores/state/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { readLedger } from '../../test/support/ledger.ts'
import { isAlive, processesOfRun } from '../../test/support/processes.ts'
import { up } from '../oarlock-up.ts'
import type { Bench } from '../run.ts'
import {
  argument,
  chain,
  inDirectory,
  isReady,
  leaseMs,
  needTerraform,
  resources,
  runsOf,
  secondsPerResource,
  signal,
  spread,
  supervisorOf,
} from './chain.ts'

type PauseOutcome = { engineExitedMs: number; workerSurvives: boolean; processes: number; late: number; orphans: number }

/** `--times N` (default 20) of each kind, sequentially: all workers share the supervisor that is paused. */
export async function bench(args: string[]): Promise<Bench> {
  needTerraform()
  const times = Number(argument(args, 'times', '20'))
  return await inDirectory(directory => pauseAll(directory, times))
}

async function pauseAll(directory: string, times: number): Promise<Bench> {
  const dataDir = join(directory, 'data')
  const { client, stop } = await up(dataDir, ['--max-workers', '4'])
  const rows: Bench['rows'] = []
  try {
    for (const kind of ['alone', 'tree'] as const) {
      const outcomes: PauseOutcome[] = []
      for (let round = 0; round < times; round++) {
        const name = `pause-${kind}-${round}`
        outcomes.push(await pauseOnce(client, dataDir, join(directory, 'ledgers', name), name, kind))
        process.stderr.write(`\r${kind} ${round + 1}/${times} `)
      }
      const exited = spread(outcomes.map(({ engineExitedMs }) => engineExitedMs / 1_000))
      const sum = (key: 'processes' | 'late' | 'orphans') => outcomes.reduce((total, each) => total + each[key], 0)
      rows.push({
        paused: kind === 'alone' ? 'the worker alone' : 'worker, supervisor and engine',
        times,
        'engine exited p50 s': exited.p50,
        'max s': exited.max,
        'workers that survive': outcomes.filter(each => each.workerSurvives).length,
        'processes left': sum('processes'),
        'old writes accepted': sum('late'),
        'orphaned states': sum('orphans'),
      })
    }
  } finally {
    await stop()
  }
  return {
    title: 'SIGSTOP for longer than the Lease, then SIGCONT',
    about: `Engine exited: from SIGSTOP if only the worker is paused (bar: before the Lease of ${leaseMs / 1_000} s expires), from SIGCONT if all are. Old writes: state versions of the old epoch after one of the new (bar: 0).`,
    rows,
  }
}

async function pauseOnce(client: Client, dataDir: string, ledger: string, name: string, kind: 'alone' | 'tree'): Promise<PauseOutcome> {
  await client.resource(stackResource).create({ metadata: { name, namespace: 'default' }, spec: chain(ledger) })
  await eventually(() => readLedger(ledger).length > 0, `${name} to begin`, 120_000)
  await sleep(Math.random() * resources * secondsPerResource * 800)
  const [first] = await runsOf(client, name)
  if (!first) throw new Error(`${name}: no Run`)
  const { uid } = first.metadata
  const workerPid = (await client.resource(workerResource).get(first.spec.workerName as string)).status?.pid as number
  const supervisor = supervisorOf(dataDir)
  const tree = kind === 'alone' ? [workerPid] : [supervisor as number, workerPid, ...processesOfRun(uid)]
  const isEngine = () => processesOfRun(uid).some(pid => pid !== workerPid)
  for (const pid of tree) signal(pid, 'SIGSTOP')
  let startedMs = performance.now()
  if (kind === 'alone') {
    await eventually(() => !isEngine(), `the engine of ${name} to exit`, 30_000)
    const engineExitedMs = performance.now() - startedMs
    await sleep(Math.max(0, leaseMs + 2_000 - engineExitedMs))
    for (const pid of tree) signal(pid, 'SIGCONT')
    return { engineExitedMs, ...(await observeAftermath(client, name, uid, workerPid)) }
  }
  const runs = client.resource(runResource)
  await eventually(
    async () => (await runs.get(first.metadata.name, { namespace: 'default' })).status?.phase === 'Lost',
    `${name} to be Lost`,
    60_000,
  )
  await eventually(
    async () => (await runsOf(client, name)).some(run => run.spec.epoch > first.spec.epoch && run.status?.startedAt),
    `the next Run of ${name} to start`,
    60_000,
  )
  await sleep(1_000)
  for (const pid of tree.toReversed()) signal(pid, 'SIGCONT')
  startedMs = performance.now()
  await eventually(() => !isEngine(), `the engine of ${name} to exit`, 30_000)
  return { engineExitedMs: performance.now() - startedMs, ...(await observeAftermath(client, name, uid, workerPid)) }
}

async function observeAftermath(
  client: Client,
  name: string,
  runUid: string,
  workerPid: number,
): Promise<Omit<PauseOutcome, 'engineExitedMs'>> {
  await eventually(() => isReady(client, name), `${name} to be Ready`, 180_000)
  const list = async (what: string) =>
    (await (await client.request({ method: 'GET', path: `/state/default/${name}/${what}` })).json()) as unknown
  const { versions } = (await list('versions')) as { versions: VersionInfo[] }
  const { orphans } = (await list('orphans')) as { orphans: OrphanInfo[] }
  const rising = versions.toSorted((a, b) => a.version - b.version)
  const late = rising.filter((each, index) => rising.slice(0, index).some(earlier => earlier.epoch > each.epoch)).length
  await eventually(() => !isAlive(workerPid), 'the worker to exit', 20_000).catch(() => {})
  return { workerSurvives: isAlive(workerPid), processes: processesOfRun(runUid).length, late, orphans: orphans.length }
}
