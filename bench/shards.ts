/**
 * Sharded controllers (issue 16): `npm run bench -- shards --what WHAT`, each of which fits into ten minutes with the defaults below.
 * `throughput`: `--objects 4000 --cpu 5 --share 0.2 --rounds 1`. `memory`: `--objects 4000` roots of 18 children. `kill`, `stop`, `cut`: `--times 50
 * --keys 250 --lease 4`. `restart`: `--times 3`. `stacks`: `--stacks 4000 --times 1`.
 */
import { parseArgs } from 'node:util'
import type { Bench } from './run.ts'
import { unmetFaults, unmetMemory, unmetThroughput } from './shards/bars.ts'
import { type FaultName, faultNames, faults } from './shards/faults.ts'
import { memory } from './shards/memory.ts'
import { stacks } from './shards/stacks.ts'
import { throughput } from './shards/throughput.ts'

const replicas = 5

export async function bench(args: string[]): Promise<Bench> {
  const text = { type: 'string' } as const
  const options = { what: text, objects: text, cpu: text, share: text, rounds: text, times: text, keys: text, lease: text, stacks: text }
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const number = (name: keyof typeof options, byDefault: number) => {
    const value = Number(values[name] ?? byDefault)
    if (!(value > 0)) throw new RangeError(`--${name} must be a number > 0, got ${JSON.stringify(values[name])}`)
    return value
  }
  const { what } = values
  switch (what) {
    case 'throughput': {
      const share = number('share', 0.2)
      const rows = await throughput({
        objects: number('objects', 4_000),
        cpuMs: number('cpu', 5),
        share,
        rounds: number('rounds', 1),
        replicas,
      })
      return {
        title: `Throughput of ${replicas} replicas against 1`,
        about: `Each replica is held to ${share} of a core by its cgroup (CFS quota, v1); every object is changed once per round. Bar: ratio >= 4.5.`,
        rows,
        failed: report(unmetThroughput(rows)),
      }
    }
    case 'memory': {
      const rows = await memory({ roots: number('objects', 4_000), replicas })
      return {
        title: `Memory and received bytes of ${replicas} replicas against 1`,
        about:
          'Replicas have worked on 3,800 objects that were deleted again (idle), and receive all objects as they are created. RSS, private memory (RSS without the pages that processes share) and heap after the collections with which `collectGarbageWhenIdle` follows the last work. Bar for received bytes, heap and RSS of each replica: <= 35 % of the single one (1/5 + 15 %).',
        rows,
        failed: report(unmetMemory(rows)),
      }
    }
    case 'stacks': {
      const rows = await stacks({ stacks: number('stacks', 4_000), times: number('times', 1) })
      return {
        title: 'Three Stack controllers; the one that leads dispatch is killed during a burst of changes',
        about:
          'Executed twice: a generation of a Stack with more than one successful Run, or a Run that was given to two workers. Bar: every Stack Ready, 0 twice.',
        rows,
        failed: rows.some(row => Number(row['executed twice']) + Number(row['given to two workers']) + Number(row['not Ready']) > 0),
      }
    }
    default: {
      if (!faultNames.includes(what as FaultName)) {
        throw new TypeError(`--what must be one of throughput, memory, ${faultNames.join(', ')}, stacks, got ${JSON.stringify(what)}`)
      }
      const leaseMs = number('lease', 4) * 1_000
      const intervalMs = 500
      const times = number('times', what === 'restart' ? 3 : 50)
      const rows = await faults(what as FaultName, { members: replicas, keys: number('keys', 250), times, leaseMs, intervalMs })
      return {
        title: `Members under load: ${what}`,
        about: `Every key is reconciled again every ${intervalMs} ms; idle: the longest time between two reconciles of a key, less that interval. Bar: ${what === 'restart' ? 'idle <= 2 s, every key moves at most twice' : 'no two at work on a key but for the call begun before a pause, no effect of a lower fence, idle <= Lease + 2 s'}.`,
        rows,
        failed: report(rows.flatMap(row => unmetFaults(what as FaultName, row))),
      }
    }
  }
}

/** Whether a bar is not met. */
function report(unmet: readonly string[]): boolean {
  for (const line of unmet) process.stderr.write(`not met: ${line}\n`)
  return unmet.length > 0
}
