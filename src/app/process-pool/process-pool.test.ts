import { deepEqual, equal, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import type { WorkerPool } from '../../api/index.ts'
import type { ExitFailure } from '../../controllers/dispatch/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { type OomKillCount, OomKills } from './oom-kills.ts'
import { ProcessPool } from './process-pool.ts'

const pool = { metadata: { name: 'default' }, spec: { mode: 'Process' } } as WorkerPool

/** Process pools, each like that of a separate `oarlock up`, whose workers run a program that never registers. */
function setUp(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-process-pool-'))
  const program = join(directory, 'sleeper.js')
  writeFileSync(
    program,
    `const name = process.argv[process.argv.indexOf('--name') + 1]
    process.on('SIGTERM', () => process.exit(1))
    setInterval(() => {}, 1e6)
    require('node:fs').writeFileSync(${JSON.stringify(directory)} + '/' + name + '.pid', String(process.pid))`,
  )
  /** Resolves when the worker handles signals. */
  const pidOf = async (name: string): Promise<number> => {
    const path = join(directory, `${name}.pid`)
    return Number(await eventually(() => existsSync(path) && readFileSync(path, 'utf8'), `worker ${name} to run`))
  }
  mkdirSync(join(directory, 'data'))
  // Like a /tmp or data directory that is a symbolic link.
  symlinkSync(join(directory, 'data'), join(directory, 'link'))
  const exits: string[] = []
  const crashes: [worker: string, crash: ExitFailure['crash']][] = []
  const start = (oomKills?: OomKills) => {
    const processes = new ProcessPool({
      ...(oomKills && { oomKills }),
      launcher: [process.execPath, program],
      environmentOf: async () => ({ PATH: process.env.PATH }),
      outputDirectory: join(directory, 'link', 'workers'),
      log: silentLog,
    })
    processes.listen({
      exited: (worker, code, failure) => {
        exits.push(`${worker} ${code} ${failure?.reason ?? ''}`)
        crashes.push([worker, failure?.crash])
      },
      observed: () => {},
    })
    return processes
  }
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return { start, pidOf, exits, crashes, directory }
}

const names = (processes: ProcessPool) =>
  processes
    .running()
    .map(({ name, pool: of }) => `${of}/${name}`)
    .sort()

test('adopts the workers of a killed process: reports their exits and can end them', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async t => {
  const { start, exits, directory } = setUp(t)
  const before = start()
  for (const name of ['default-1', 'default-2', 'default-3']) await before.start(pool, name)
  const after = start()
  try {
    deepEqual(names(after), ['default/default-1', 'default/default-2', 'default/default-3'])
    after.stop('default-1', { force: true })
    await eventually(() => names(after).length === 2, 'its exit to be noticed')
    await eventually(() => exits.includes('default-1 0 CrashedOnStartup'), 'its exit to be reported')
    equal(existsSync(join(directory, 'data', 'workers', 'default-1.log')), false)
    equal(await after.whenEmpty(1), false)
    // As after a manual cleanup of the data directory.
    rmSync(join(directory, 'data', 'workers'), { recursive: true })
    after.drain()
    equal(await after.whenEmpty(10_000), true, 'draining waits for adopted workers')
    await rejects(after.start(pool, 'default-4'), /draining and starts no worker/)
    await eventually(() => before.running().length === 0, 'its children to exit')
    deepEqual(names(start()), [])
  } finally {
    for (const name of ['default-1', 'default-2', 'default-3']) before.stop(name, { force: true })
    await before.whenEmpty(10_000)
  }
})

for (const { name, options, replace } of [
  { name: 'has the path of an output but another file', options: {}, replace: true },
  { name: 'belongs to another user', options: { uid: 65_534 }, replace: false },
]) {
  test(`does not adopt or signal a process that ${name}`, {
    skip: (process.platform !== 'linux' && 'needs /proc') || (options.uid !== undefined && process.getuid?.() !== 0 && 'needs root'),
  }, async t => {
    const { start, directory } = setUp(t)
    const outputs = join(directory, 'data', 'workers')
    mkdirSync(outputs)
    const path = join(outputs, 'default-1.log')
    const output = openSync(path, 'a')
    const args = ['-c', 'echo started; while :; do sleep 1000; done', 'worker', '--name', 'default-1', '--pool', 'default']
    const child = spawn('/bin/sh', args, { detached: true, stdio: ['ignore', output, 'ignore'], cwd: '/', ...options })
    closeSync(output)
    try {
      await eventually(() => readFileSync(path, 'utf8') === 'started\n', 'the process to run')
      if (replace) {
        rmSync(path)
        writeFileSync(path, '')
      }
      deepEqual(names(start()), [])
    } finally {
      // Its session, with the sleep that it started.
      process.kill(-child.pid!, 'SIGKILL')
    }
  })
}

test('reports a worker that ends by a signal of a crash, and none that anyone kills or that was stopped', async t => {
  const { start, pidOf, crashes } = setUp(t)
  const processes = start()
  for (const name of ['crashed', 'killed', 'stopped']) await processes.start(pool, name)
  await pidOf('stopped')
  process.kill(await pidOf('crashed'), 'SIGSEGV')
  process.kill(await pidOf('killed'), 'SIGKILL')
  processes.stop('stopped', { force: false })
  await eventually(() => crashes.length === 3, 'their exits')
  deepEqual(Object.fromEntries(crashes), {
    crashed: { reason: 'WorkerCrashed', message: 'worker crashed was ended by SIGSEGV' },
    killed: undefined,
    stopped: undefined,
  })
})

for (const [name, scope, others, expected] of [
  ['the only worker', 'Machine', [], 'WorkerOutOfMemory'],
  ['one of several workers', 'Machine', ['other'], undefined],
  ['one of several workers, in a cgroup that counts its own,', 'Cgroup', ['other'], 'WorkerOutOfMemory'],
] as const)
  test(`an OOM kill is ${expected === undefined ? 'not ' : ''}the reason for the end of ${name} by SIGKILL`, async t => {
    const { start, pidOf, crashes } = setUp(t)
    const count: { -readonly [Key in keyof OomKillCount]: OomKillCount[Key] } = { kills: 3, scope }
    const processes = start(new OomKills(() => ({ ...count })))
    t.after(() => processes.drain())
    for (const worker of ['killed', ...others]) await processes.start(pool, worker)
    // As the kernel does it.
    count.kills++
    process.kill(await pidOf('killed'), 'SIGKILL')
    await eventually(() => crashes.length === 1, 'its exit')
    deepEqual(crashes, [
      [
        'killed',
        expected && { reason: expected, message: 'worker killed was ended by SIGKILL while the kernel ended processes for lack of memory' },
      ],
    ])
  })
