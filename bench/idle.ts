/**
 * Memory and CPU of idle Ready Stacks. `--stacks N` (default 1000); `--hollow`: hollow workers make them Ready, within seconds; `--settle S`: seconds to wait
 * before the measurement; `--restart`: restarts first, as after an update; `--apart`: each role in a process of its own, filled by hollow workers.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { stackResource } from '../src/api/index.ts'
import type { Client } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { startRolesApart } from './idle-apart.ts'
import { startHollow } from './leases.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'
import { cpuSecondsOf, privateMbOf, rssMbOf } from './server-process.ts'

/** Longer than the API server keeps the history of a burst. */
const defaultSettleSeconds = 390
const observeMs = 60_000
const hollowSeconds = 17

export async function bench(args: string[]): Promise<Bench> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const options = { stacks: text('1000'), settle: text(String(defaultSettleSeconds)) } as const
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const count = Number(values.stacks)
  const settleMs = Number(values.settle) * 1_000
  const isApart = args.includes('--apart')
  const isHollow = isApart || args.includes('--hollow')
  const isRestarted = !isApart && args.includes('--restart')
  const base = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const start = async () => {
    if (isApart) return await startRolesApart(base)
    const { client, pid, stop } = await up(base)
    return { client, kubeconfig: join(base, 'kubeconfig'), pids: { up: pid }, stop }
  }
  let processes = await start()
  try {
    const started = performance.now()
    await (isHollow ? fillByHollowWorkers(processes.kubeconfig, count) : fill(processes.client, count))
    await untilReady(processes.client, count)
    const convergeSeconds = (performance.now() - started) / 1_000
    if (isRestarted) {
      await processes.stop()
      processes = await start()
    }
    await sleep(settleMs)
    const measured = Object.entries(processes.pids).map(([role, pid]) => ({ role, pid, cpuBefore: cpuSecondsOf(pid) }))
    await sleep(observeMs)
    const rows = measured.map(({ role, pid, cpuBefore }) => ({
      process: role,
      'RSS MB': rssMbOf(pid),
      'of it private MB': privateMbOf(pid),
      'CPU % of a core': ((cpuSecondsOf(pid) - cpuBefore) / (observeMs / 1_000)) * 100,
    }))
    return {
      title: `${count} Ready Stacks, idle`,
      about:
        `Each Stack had one Run, ${isHollow ? 'reported by hollow workers' : 'executed by a one-shot worker (engine command)'}; all Ready after ${Math.round(convergeSeconds)} s. ` +
        `CPU over ${observeMs / 1_000} s, ${settleMs / 1_000} s after ${isRestarted ? 'a restart' : 'the last became Ready'}.`,
      rows,
    }
  } finally {
    await processes.stop()
    rmSync(base, { recursive: true, force: true })
  }
}

async function fill(client: Client, count: number): Promise<void> {
  const stacks = client.resource(stackResource)
  for (let index = 0; index < count; index++) {
    await stacks.create({
      metadata: { name: `idle-${index}`, namespace: 'default' },
      spec: {
        engine: 'command',
        source: { inline: { files: { 'note.txt': `${index}` } } },
        command: { apply: ['true'] },
        interval: '24h',
      },
    })
  }
}

/** A few Stacks are changed twice. */
async function fillByHollowWorkers(kubeconfig: string, count: number): Promise<void> {
  const { ended } = startHollow([
    ...[
      '--kubeconfig',
      kubeconfig,
      '--workers',
      '100',
      '--stacks',
      String(count),
      '--runs-per-second',
      String(Math.ceil(count / hollowSeconds) + 1),
    ],
    ...['--duration', `${hollowSeconds}s`, '--keep', '--connections', '2', '-o', 'json'],
  ])
  await ended
}

async function untilReady(client: Client, count: number): Promise<void> {
  const started = performance.now()
  for (;;) {
    const { items } = await client.resource(stackResource).list({})
    const ready = items.filter(stack => isConditionTrue(stack.status?.conditions, 'Ready')).length
    console.error(`${ready} of ${count} Ready after ${Math.round((performance.now() - started) / 1_000)} s`)
    if (ready === count) return
    await sleep(10_000)
  }
}
