/** `npm run bench -- NAME [--json FILE] [-o json]`: runs one bench, prints its table or with -o json its rows, writes its figures as JSON. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { parseArgs } from 'node:util'
import { printTable } from './table.ts'

/** Result of a bench: rows of one table. Units are in the column names. */
export type Bench = {
  title: string
  about: string
  rows: Record<string, string | number>[]
  /** The process exits with 1: the bench found what must not be. */
  failed?: boolean
}

const benches: Record<string, () => Promise<{ bench(args: string[]): Promise<Bench> }>> = {
  start: () => import('./start.ts'),
  idle: () => import('./idle.ts'),
  disk: () => import('./disk.ts'),
  server: () => import('./server.ts'),
  dispatch: () => import('./dispatch.ts'),
  leases: () => import('./leases.ts'),
  rank: () => import('./rank.ts'),
  queue: () => import('./queue.ts'),
  state: () => import('./state.ts'),
  informer: () => import('./informer.ts'),
  import: () => import('./import.ts'),
  kyma: () => import('./kyma.ts'),
  'worker-start': () => import('./worker-start.ts'),
  'kyma-curves': () => import('./kyma-curves.ts'),
  kill: () => import('./faults/kill.ts'),
  pods: () => import('./pods.ts'),
  kwok: () => import('./kwok.ts'),
  'cluster-kills': () => import('./faults/cluster-kills.ts'),
  pause: () => import('./faults/pause.ts'),
  failover: () => import('./faults/failover.ts'),
  simulate: () => import('./simulate.ts'),
  'shard-simulation': () => import('./shard-simulation.ts'),
  soak: () => import('./soak.ts'),
  stall: () => import('./stall.ts'),
  attack: () => import('./attack.ts'),
  providers: () => import('./providers.ts'),
  pulumi: () => import('./pulumi.ts'),
  installs: () => import('./installs.ts'),
  shards: () => import('./shards.ts'),
  managed: () => import('./managed.ts'),
  gateway: () => import('./gateway.ts'),
  console: () => import('./console.ts'),
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  strict: false,
  options: { json: { type: 'string' }, output: { type: 'string', short: 'o' }, help: { type: 'boolean', short: 'h' } },
})
const [name = ''] = positionals
const load = benches[name]
if (!load) {
  console.error(
    `unknown bench ${JSON.stringify(name)}: must be one of ${Object.keys(benches).join(', ')}; usage: npm run bench -- NAME [--json FILE] [-o json]`,
  )
  process.exit(2)
}

if (values.help) {
  // The options are described where they are read.
  const [file = ''] = globSync(`${import.meta.dirname}/{,faults/}${name}.ts`)
  const [, comment = `npm run bench -- ${name}`] = /\/\*\*(.*?)\*\//s.exec(readFileSync(file, 'utf8')) ?? []
  console.log(comment.replaceAll(/^ \* ?/gm, '').trim())
  process.exit(0)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130))
const { bench } = await load()
const { title, about, rows, failed = false } = await bench(process.argv.slice(2))
if (values.output === 'json') console.log(JSON.stringify(rows, null, 2))
else {
  console.log(`\n${title}\n${about}\n`)
  printTable(rows)
}
if (typeof values.json === 'string') {
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version, platform: process.platform }
  writeFileSync(values.json, `${JSON.stringify({ name, title, about, at: new Date().toISOString(), machine, rows }, null, 2)}\n`)
}
process.exit(failed ? 1 : 0)
