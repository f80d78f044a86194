/** kill -9 at random times during real terraform applies: of workers (and their engines or supervisor), or of the all-in-one process. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { runResource, stackResource, workerResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { readLedger } from '../../test/support/ledger.ts'
import { processesOfRun } from '../../test/support/processes.ts'
import { type Up, up } from '../oarlock-up.ts'
import type { Bench } from '../run.ts'
import {
  argument,
  chain,
  inDirectory,
  isReady,
  leaseMs,
  lockOf,
  needTerraform,
  resources,
  runsOf,
  secondsPerResource,
  signal,
  spread,
  supervisorOf,
} from './chain.ts'

const victims = ['worker', 'worker-and-engine', 'worker-and-supervisor', 'all-in-one'] as const
type Victim = (typeof victims)[number]

/**
 * `--what worker|worker-and-engine|worker-and-supervisor|all-in-one` (default worker), `--times N` (default 100; 50 for all-in-one),
 * `--concurrency N` (default 2; 20 for all-in-one): more Runs than cores starve each other, and workers then stop themselves.
 */
export async function bench(args: string[]): Promise<Bench> {
  needTerraform()
  const what = argument(args, 'what', 'worker') as Victim
  if (!victims.includes(what)) throw new Error(`--what ${what} must be one of ${victims.join(', ')}`)
  const isAllInOne = what === 'all-in-one'
  const times = Number(argument(args, 'times', isAllInOne ? '50' : '100'))
  const concurrency = Number(argument(args, 'concurrency', isAllInOne ? '20' : '2'))
  return await inDirectory(directory =>
    isAllInOne ? killAllInOne(directory, times, concurrency) : killWorkers(directory, what, times, concurrency),
  )
}

type KillOutcome = {
  lostMs: number
  nextStartedMs: number
  readyMs: number
  again: number
  processes: number
  locks: number
  directories: number
}

async function killWorkers(directory: string, what: Victim, times: number, concurrency: number): Promise<Bench> {
  const dataDir = join(directory, 'data')
  // Two workers for each Stack: the killed one, until its Lease expires, and the one that takes over.
  const { client, stop } = await up(dataDir, ['--max-workers', String(2 * concurrency)])
  const outcomes: (KillOutcome | Error)[] = []
  try {
    let next = 0
    const one = async () => {
      while (next < times) {
        const name = `kill-${next++}`
        outcomes.push(await killOnce(client, dataDir, join(directory, 'ledgers', name), name, what).catch(error => error as Error))
        process.stderr.write(`\r${outcomes.length}/${times} `)
      }
    }
    await Promise.all(Array.from({ length: concurrency }, one))
  } finally {
    await stop()
  }
  const good = outcomes.filter(each => !(each instanceof Error)) as KillOutcome[]
  for (const each of outcomes) if (each instanceof Error) console.error(each.message)
  const sum = (key: keyof KillOutcome) => good.reduce((total, each) => total + each[key], 0)
  const [lost, next, ready] = (['lostMs', 'nextStartedMs', 'readyMs'] as const).map(key => spread(good.map(each => each[key] / 1_000)))
  return {
    title: `kill -9 of ${what} at ${times} random times during terraform applies, ${concurrency} concurrently`,
    about: `Seconds from the kill: until the Run is Lost, until the next Run of the Stack has started (bar: Lease ${leaseMs / 1_000} s + 5 s), until Ready. "again": resources completed 1 s before the kill that were started again (bar: 0).`,
    rows: [
      {
        killed: times,
        recovered: good.length,
        'Lost p50 s': lost!.p50,
        'Lost max s': lost!.max,
        'next Run p50 s': next!.p50,
        'next Run max s': next!.max,
        'over 15 s': good.filter(each => each.nextStartedMs > leaseMs + 5_000).length,
        'Ready max s': ready!.max,
        again: sum('again'),
        'processes left': sum('processes'),
        'locks left': sum('locks'),
        'directories left': sum('directories'),
      },
    ],
  }
}

async function killOnce(client: Client, dataDir: string, ledger: string, name: string, what: Victim): Promise<KillOutcome> {
  await client.resource(stackResource).create({ metadata: { name, namespace: 'default' }, spec: chain(ledger) })
  await eventually(() => readLedger(ledger).length > 0, `${name} to begin`, 120_000)
  await sleep(Math.random() * resources * secondsPerResource * 900)
  const [first] = await runsOf(client, name)
  if (!first) throw new Error(`${name}: no Run`)
  const worker = await client.resource(workerResource).get(first.spec.workerName as string)
  const engines = processesOfRun(first.metadata.uid)
  const supervisor = what === 'worker-and-supervisor' ? supervisorOf(dataDir) : undefined
  const killedAtMs = Date.now()
  if (supervisor !== undefined) signal(supervisor, 'SIGKILL')
  signal(worker.status?.pid as number, 'SIGKILL')
  if (what === 'worker-and-engine') for (const pid of engines) signal(pid, 'SIGKILL')
  const runs = client.resource(runResource)
  await eventually(
    async () => (await runs.get(first.metadata.name, { namespace: 'default' })).status?.phase === 'Lost',
    `${name} to be Lost`,
    60_000,
  )
  const lostMs = Date.now() - killedAtMs
  // Invariant 2: when it is declared Lost, none of its processes is running.
  const processes = processesOfRun(first.metadata.uid).length
  await eventually(
    async () => (await runsOf(client, name)).some(run => run.spec.epoch > first.spec.epoch && run.status?.startedAt),
    `the next Run of ${name} to start`,
    60_000,
  )
  const nextStartedMs = Date.now() - killedAtMs
  await eventually(() => isReady(client, name), `${name} to be Ready`, 120_000)
  const lines = readLedger(ledger)
  const safe = lines.filter(line => line.what === 'done' && line.runUid === first.metadata.uid && line.atMs <= killedAtMs - 1_000)
  const again = lines.filter(
    line => line.what === 'begin' && line.runUid !== first.metadata.uid && safe.some(done => done.item === line.item),
  )
  return {
    ...{ lostMs, nextStartedMs, readyMs: Date.now() - killedAtMs, again: again.length, processes },
    locks: Object.keys(await lockOf(client, name)).length > 0 ? 1 : 0,
    directories: existsSync(join(dataDir, 'runs', first.metadata.uid)) ? 1 : 0,
  }
}

async function killAllInOne(directory: string, times: number, stacks: number): Promise<Bench> {
  const dataDir = join(directory, 'data')
  const args = ['--max-workers', String(stacks)]
  const names = Array.from({ length: stacks }, (_, index) => `app-${index}`)
  const ledgerOf = (name: string) => join(directory, 'ledgers', name)
  let oarlock: Up = await up(dataDir, args)
  const backMs: number[] = []
  const runs = new Set<string>()
  try {
    for (let generation = 1; generation <= times; generation++) {
      for (const name of names) {
        const spec = chain(ledgerOf(name), generation)
        await oarlock.client.resource(stackResource).apply({ metadata: { name, namespace: 'default' }, spec }, { force: true })
      }
      const isInProgress = (name: string) => readLedger(ledgerOf(name)).some(({ item }) => item.startsWith(`${generation}.`))
      await eventually(() => names.every(isInProgress), 'every Run to be in progress', 300_000)
      await sleep(Math.random() * resources * secondsPerResource * 900)
      await oarlock.kill()
      const killedMs = performance.now()
      oarlock = await up(dataDir, args)
      backMs.push(performance.now() - killedMs)
      const { client } = oarlock
      for (const name of names) await eventually(() => isReady(client, name), `${name} to be Ready`, 300_000)
      for (const run of (await client.resource(runResource).listAll()).items) runs.add(run.metadata.uid)
      process.stderr.write(`\r${generation}/${times} `)
    }
    const { client } = oarlock
    const counts = new Map<string, number>()
    for (const name of names) {
      for (const { what, item } of readLedger(ledgerOf(name)))
        if (what === 'done') counts.set(`${name} ${item}`, (counts.get(`${name} ${item}`) ?? 0) + 1)
    }
    const locks = await Promise.all(names.map(name => lockOf(client, name)))
    await eventually(() => readdirSync(join(dataDir, 'runs')).length === 0, 'the directories of Runs to be removed', 30_000).catch(() => {})
    return {
      title: `kill -9 of the all-in-one at ${times} random times with ${stacks} Runs active`,
      about:
        'Every Stack changes; while its terraform runs, everything but workers and supervisor is killed and restarted. "twice": resources applied twice; "lost": never applied.',
      rows: [
        {
          kills: times,
          'back p50 s': spread(backMs).p50 / 1_000,
          'back max s': spread(backMs).max / 1_000,
          Runs: runs.size,
          'Stacks Ready': names.length,
          done: counts.size,
          twice: [...counts.values()].filter(count => count > 1).length,
          lost: times * stacks * resources - counts.size,
          'processes left': [...runs].reduce((sum, uid) => sum + processesOfRun(uid).length, 0),
          'locks left': locks.filter(lock => Object.keys(lock).length > 0).length,
          'directories left': readdirSync(join(dataDir, 'runs')).length,
        },
      ],
    }
  } finally {
    await oarlock.stop()
  }
}
