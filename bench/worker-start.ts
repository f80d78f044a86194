/** Time from the start of a one-shot worker's process to the start of its engine, by the kernel's start times. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { stackResource } from '../src/api/index.ts'
import { up } from './oarlock-up.ts'
import type { Bench } from './run.ts'

const rounds = 20
/** The first workers fill the compile cache and start the host's supervisor: reported separately. */
const warmUp = 3

/**
 * The engine is a shell that records when it and its parent, the worker, started (proc(5), field 22: ticks of 10 ms). The Stacks are
 * created one after another, so each worker starts on a machine that is idle except for the all-in-one.
 */
export async function bench(): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const process = await up(join(directory, 'data'))
  try {
    const started: { toEngineMs: number; cpuMs: number; rssMb: number }[] = []
    for (let round = 0; round < warmUp + rounds; round++) {
      const note = join(directory, `note-${round}`)
      const script = `cat /proc/self/stat > ${note}.engine; cat /proc/$PPID/stat > ${note}.worker; grep VmRSS /proc/$PPID/status >> ${note}.worker; mv ${note}.worker ${note}`
      await process.client.resource(stackResource).create({
        metadata: { name: `start-${round}`, namespace: 'default' },
        spec: { engine: 'command', source: { inline: { files: { a: 'a' } } }, command: { apply: ['sh', '-c', script] } },
      })
      while (!existsSync(note)) await sleep(5)
      const engine = statOf(readFileSync(`${note}.engine`, 'utf8'))
      const worker = statOf(readFileSync(note, 'utf8'))
      const rss = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(note, 'utf8'))?.[1]) / 1_024
      started.push({ toEngineMs: 10 * (engine.startTicks - worker.startTicks), cpuMs: 10 * worker.cpuTicks, rssMb: rss })
      // The worker exits before the next one starts.
      await sleep(1_000)
    }
    const row = (name: string, of: typeof started) => {
      const at = (key: keyof (typeof started)[number], share: number) =>
        of.map(each => each[key]).sort((a, b) => a - b)[Math.min(of.length - 1, Math.floor(of.length * share))] as number
      return {
        workers: name,
        'to engine p50 ms': at('toEngineMs', 0.5),
        'p90 ms': at('toEngineMs', 0.9),
        'max ms': at('toEngineMs', 1),
        'CPU p50 ms': at('cpuMs', 0.5),
        'RSS MB': at('rssMb', 0.5),
      }
    }
    return {
      title: 'One-shot worker: process start → engine started',
      about:
        'Ticks of 10 ms. CPU time of the worker until its engine starts. Includes registration, assignment by dispatch, lock and Secrets.',
      rows: [row(`first ${warmUp}`, started.slice(0, warmUp)), row(`next ${rounds}`, started.slice(warmUp))],
    }
  } finally {
    await process.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Fields 14, 15 (user and system time) and 22 (start) of /proc/<pid>/stat; the name before them may contain anything. */
function statOf(text: string): { startTicks: number; cpuTicks: number } {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return { startTicks: Number(fields[19]), cpuTicks: Number(fields[11]) + Number(fields[12]) }
}
