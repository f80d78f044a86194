/**
 * 40 workspaces of one npm project (`@pulumi/pulumi`, `@pulumi/aws`, `@pulumi/kubernetes` and a local shared package) after a change in git, with a
 * pool of 4 processes at level Sandbox: through the dependency store, against an install in each workspace. It needs the npm registry.
 * `--workspaces N` (default 40), `--pool N` (4), `--installs N`: how many of the installs to compare with the pool executes (default 4; 40 executes all,
 * otherwise their time is extrapolated), `--loads N`: how many programs are loaded (default 4), `--network Host` where slirp4netns is missing.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { RunAnswer, RunRequest } from './install-run.ts'
import type { Bench } from './run.ts'

const program = `
const pulumi = require('@pulumi/pulumi')
let resources = 0
pulumi.runtime.setMocks({
  newResource: args => { resources++; return { id: args.name + '-id', state: args.inputs } },
  call: args => args.inputs,
})
const aws = require('@pulumi/aws')
const k8s = require('@pulumi/kubernetes')
const { nameOf } = require('@bench/shared')
const all = []
for (let number = 0; number < 6; number++) {
  all.push(new aws.s3.Bucket(nameOf('bucket', number), { tags: { number: String(number) } }).id)
  all.push(new k8s.core.v1.ConfigMap(nameOf('config', number), { data: { number: String(number) } }).id)
}
pulumi.all(all).apply(ids => { console.log(resources + ' resources, ' + ids.length + ' ids'); process.exit(0) })
`

export async function bench(args: string[]): Promise<Bench> {
  const text = (value: string) => ({ type: 'string', default: value }) as const
  const options = { workspaces: text('40'), pool: text('4'), installs: text('4'), loads: text('4'), network: text('Private') } as const
  const { values } = parseArgs({ args, strict: false, allowPositionals: true, options })
  const [workspaces, pool, installs, loads] = [values.workspaces, values.pool, values.installs, values.loads].map(Number) as [
    number,
    number,
    number,
    number,
  ]
  const network = values.network as 'Private' | 'Host'
  const base = mkdtempSync(join(tmpdir(), 'oarlock-bench-'))
  const workers: Pool[] = []
  try {
    const source = join(base, 'source')
    writeProject(source)
    const runsDir = join(base, 'runs')
    const start = async () => {
      const started = await Pool.start(pool)
      workers.push(started)
      return started
    }
    const request = (name: string): RunRequest => ({ name, runsDir, source, store: join(base, 'dependencies'), load: undefined, network })

    // The store has the tree of the commit before the change.
    const first = await start()
    await first.run([request('before')])
    const stored = kibibytes(join(base, 'dependencies'))
    writeFileSync(join(source, 'shared/index.js'), `${readFileSync(join(source, 'shared/index.js'), 'utf8')}// changed\n`)

    const startedMs = performance.now()
    const names = Array.from({ length: workspaces }, (_, index) => `workspace-${index}`)
    const answers = await first.run(names.map(request))
    const readySeconds = (performance.now() - startedMs) / 1_000
    const installed = answers.filter(({ how }) => how === 'Installed')
    rmSync(join(runsDir, 'before'), { recursive: true, force: true })
    const disk = kibibytes(join(base, 'dependencies')) - stored + kibibytes(runsDir)
    const further = answers.filter(({ how }) => how === 'Cached').map(({ seconds }) => seconds)
    const furtherCpu = answers.filter(({ how }) => how === 'Cached').map(({ cpuSeconds }) => cpuSeconds)
    const loaded = await first.run(names.slice(0, loads).map(name => ({ ...request(`load-${name}`), load: 'node index.js' })))

    const alone = await start()
    const one = join(base, 'alone')
    const [single] = await alone.run([{ ...request('single'), runsDir: one, store: undefined }])
    const sequentialSeconds = single!.seconds * workspaces
    const aloneStartedMs = performance.now()
    const aloneNames = Array.from({ length: installs }, (_, index) => `alone-${index}`)
    await alone.run(aloneNames.map(name => ({ ...request(name), runsDir: one, store: undefined })))
    const aloneSeconds = (performance.now() - aloneStartedMs) / 1_000
    const oneDisk = kibibytes(join(one, 'single/work'))
    const allSeconds = (aloneSeconds * workspaces) / installs
    const how = installs >= workspaces ? 'measured' : `${installs} measured in ${aloneSeconds.toFixed(1)} s, extrapolated`
    const rows = [
      row('installs', installed.length, 'at most 1', installed.length === 1),
      row(`until all ${workspaces} workspaces are ready, s`, readySeconds, '', true),
      row(`the same with ${workspaces} installs, s (${how})`, allSeconds, '', true),
      row('ratio, both with the pool', allSeconds / readySeconds, 'at least 20', allSeconds / readySeconds >= 20),
      row(
        `the same with ${workspaces} installs one after another, s (1 measured in ${single!.seconds.toFixed(1)} s, extrapolated)`,
        sequentialSeconds,
        '',
        true,
      ),
      row('ratio to installs one after another', sequentialSeconds / readySeconds, '', true),
      row('the install, s', installed[0]?.seconds ?? 0, '', true),
      row('each further workspace, s: median', quantile(further, 0.5), 'at most 0.5', quantile(further, 0.5) <= 0.5),
      row('each further workspace, s: p95', quantile(further, 0.95), 'at most 0.5', quantile(further, 0.95) <= 0.5),
      row('CPU time of each further workspace, s: median', quantile(furtherCpu, 0.5), '', true),
      row(`disk of ${workspaces}, MB`, disk / 1_024, '', true),
      row('disk of one install, MB', oneDisk / 1_024, '', true),
      row('ratio of the disk', disk / oneDisk, 'at most 1.2', disk / oneDisk <= 1.2),
      row(
        'load of the program under mocks, s: median',
        quantile(
          loaded.map(({ loadSeconds }) => loadSeconds),
          0.5,
        ),
        '',
        true,
      ),
    ]
    const outputs = new Set(loaded.map(({ output }) => output))
    return {
      title: `${workspaces} workspaces of one npm project after a change in git, pool of ${pool}`,
      about: `Level Sandbox, network ${network}, npm ${version('npm')}, Node ${version('node')}. A workspace is ready when its source is copied and its packages are there (${[...new Set(answers.map(({ attachedAs }) => attachedAs))].join(', ')}). Each install has an empty npm cache, as a Run has. Programs reported: ${[...outputs].join('; ')}.`,
      rows,
      failed: rows.some(({ 'is met': isMet }) => isMet === 'no') || [...outputs].some(output => !/^12 resources/.test(output)),
    }
  } finally {
    for (const started of workers) await started.stop()
    rmSync(base, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 })
  }
}

const row = (what: string, value: number, bar: string, isMet: boolean) => ({
  what,
  value: Math.round(value * 100) / 100,
  bar,
  'is met': bar === '' ? '' : isMet ? 'yes' : 'no',
})

/** With a lock file that npm writes now: the versions of the day. */
function writeProject(source: string): void {
  mkdirSync(join(source, 'shared'), { recursive: true })
  const files = {
    'package.json': JSON.stringify({
      ...{ name: 'bench', version: '1.0.0', private: true },
      dependencies: { '@pulumi/pulumi': '^3.0.0', '@pulumi/aws': '^7.0.0', '@pulumi/kubernetes': '^4.0.0', '@bench/shared': 'file:shared' },
    }),
    'shared/package.json': JSON.stringify({ name: '@bench/shared', version: '1.0.0', main: 'index.js' }),
    'shared/index.js': 'exports.nameOf = (kind, number) => kind + "-" + number\n',
    'index.js': program,
  }
  for (const [path, content] of Object.entries(files)) writeFileSync(join(source, path), content)
  execFileSync('npm', ['install', '--package-lock-only', '--no-audit', '--no-fund'], { cwd: source, stdio: 'pipe' })
}

const version = (name: string) => execFileSync(`/usr/bin/${name}`, ['--version'], { encoding: 'utf8' }).trim()
const kibibytes = (path: string) => Number(execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t')[0])

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN
}

/** Processes that each take the next request. */
class Pool {
  readonly #children: ChildProcess[]

  private constructor(children: ChildProcess[]) {
    this.#children = children
  }

  static async start(size: number): Promise<Pool> {
    const children = Array.from({ length: size }, () => fork(join(import.meta.dirname, 'install-run.ts')))
    await Promise.all(children.map(child => once(child, 'spawn')))
    return new Pool(children)
  }

  async run(requests: RunRequest[]): Promise<RunAnswer[]> {
    const pending = [...requests]
    const answers: RunAnswer[] = []
    const work = async (child: ChildProcess) => {
      for (let request = pending.shift(); request; request = pending.shift()) {
        const abort = new AbortController()
        child.send(request)
        const exited = once(child, 'exit', abort).then(() => Promise.reject(new Error('a process of the pool ended')))
        exited.catch(() => {})
        const [answer] = (await Promise.race([once(child, 'message', abort), exited])) as [RunAnswer]
        abort.abort()
        answers.push(answer)
        console.error(`${answer.name}: ${answer.how}, ${answer.seconds.toFixed(2)} s`)
      }
    }
    await Promise.all(this.#children.map(work))
    return answers
  }

  async stop(): Promise<void> {
    const running = this.#children.filter(child => child.exitCode === null && child.signalCode === null && child.connected)
    const ended = running.map(child => once(child, 'exit'))
    for (const child of running) child.disconnect()
    await Promise.all(ended)
  }
}
