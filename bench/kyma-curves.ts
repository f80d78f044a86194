/**
 * The effect of each operator setting on a scaled-down Kyma experiment: `npm run bench -- kyma-curves --json docs/images/kyma-curves.json`,
 * then `node scripts/draw-kyma-curves.ts`. A second of the simulated installation takes 200 ms, so one Kyma takes 13.4 s.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Bench } from './run.ts'

type Point = { setting: string; value: string; args: string[] }

const points: Point[] = [
  ...['100', '200', '400', '800', 'none'].map(qps => point('rate-limit', qps, qps === 'none' ? '' : `--qps ${qps} --burst ${qps}`)),
  ...['5ms', '50ms', '200ms', '1s', '5s'].map(base => point('backoff', base, `--faults 0.1 --backoff ${base}..1000s`)),
  ...['250', '500', '1000', '2000', '5000', 'never'].map(ms => point('resync', ms, ms === 'never' ? '' : `--resync-every ${ms}`)),
  point('predicates', 'with, batched 1s', '--collect 1000'),
  point('predicates', 'with, batched 0.2s', ''),
  point('predicates', 'with, not batched', '--collect 0'),
  point('predicates', 'without, not batched', '--no-predicates --collect 0'),
  point('rendering', 'none', ''),
  point('rendering', 'once per chart', '--render'),
  point('rendering', 'for each component', '--render-each'),
  ...['1', '2', '4', '8', '16', '64', '256'].map(workers => point('workers', workers, `--workers ${workers} --kyma-workers 4`)),
  ...['64', '512', '2048', '8192'].map(hot => point('hot', hot, `--hot ${hot} --kymas 400 --second 400`)),
]

function point(setting: string, value: string, args: string): Point {
  return { setting, value, args: args.split(' ').filter(arg => arg !== '') }
}

export async function bench(args: string[]): Promise<Bench> {
  const only = args.indexOf('--only')
  const rows: Bench['rows'] = []
  for (const { setting, value, args: own } of points) {
    if (only >= 0 && setting !== args[only + 1]) continue
    const summary = await run(['--kymas', '60', '--second', '200', ...own])
    const row = {
      setting,
      value,
      kymas: Number(summary.kymas),
      seconds: Number(summary.seconds),
      'status writes': Number(summary.statusWrites),
      'Kyma status writes': Number(summary.kymaStatusWrites),
      reconciles: Number(summary.reconciles),
      'operator CPU s': Number(summary.operatorCpuSeconds),
      'operator RSS MB': Number(summary.operatorRssMb),
      failures: Number(summary.operatorErrors),
      load: Number(summary.loadAverage),
    }
    console.error(JSON.stringify(row))
    rows.push(row)
  }
  return { title: 'Kyma curves', about: '60 Kymas (400 for the compact cache), a simulated second takes 200 ms (400 ms).', rows }
}

async function run(args: string[]): Promise<Record<string, string | number>> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-bench-kyma-'))
  const file = join(directory, 'summary.json')
  try {
    const script = join(import.meta.dirname, '..', 'examples', 'kyma', 'run.ts')
    const child = spawn(process.execPath, [script, ...args, '--json', file], { stdio: 'ignore' })
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`kyma ${args.join(' ')} exited with code ${code}`)
    return JSON.parse(readFileSync(file, 'utf8'))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
