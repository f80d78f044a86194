/** Memory and CPU of 1,000 idle Ready Stacks. `--stacks N` sets their number. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { stackResource } from '../src/api/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

/** Longer than the API server keeps the history of a burst. */
const settleMs = 390_000
const observeMs = 60_000

export async function bench(args: string[]): Promise<Bench> {
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options: { stacks: { type: 'string', default: '1000' } } })
  const count = Number(values.stacks)
  const dataDir = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(dataDir)
  try {
    const emptyRssMb = process.rssMb()
    const stacks = process.client.resource(stackResource)
    const started = performance.now()
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
    for (;;) {
      const { items } = await stacks.list({ namespace: 'default' })
      const ready = items.filter(stack => isConditionTrue(stack.status?.conditions, 'Ready')).length
      console.error(`${ready} of ${count} Ready after ${Math.round((performance.now() - started) / 1_000)} s`)
      if (ready === count) break
      await sleep(10_000)
    }
    const convergeSeconds = (performance.now() - started) / 1_000
    await sleep(settleMs)
    const cpuBefore = process.cpuSeconds()
    await sleep(observeMs)
    const cpuPercent = ((process.cpuSeconds() - cpuBefore) / (observeMs / 1_000)) * 100
    return {
      title: `${count} Ready Stacks, idle`,
      about: `All-in-one process; each Stack really ran once (engine command, one-shot worker). CPU over ${observeMs / 1_000} s, ${settleMs / 1_000} s after the last became Ready, when the burst's history has expired.`,
      rows: [
        {
          stacks: count,
          'all Ready after s': convergeSeconds,
          'RSS empty MB': emptyRssMb,
          'RSS idle MB': process.rssMb(),
          'CPU % of a core': cpuPercent,
        },
      ],
    }
  } finally {
    await process.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}
