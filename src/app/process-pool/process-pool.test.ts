import { deepEqual, equal, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import type { WorkerPool } from '../../api/index.ts'
import { silentLog } from '../../kubernetes/controller/index.ts'
import { ProcessPool } from './process-pool.ts'

const pool = { metadata: { name: 'default' }, spec: { mode: 'Process' } } as WorkerPool

/** Process pools, each like that of a separate `oarlock up`, whose workers run a program that never registers. */
function setUp(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-process-pool-'))
  const program = join(directory, 'sleeper.js')
  writeFileSync(program, 'setInterval(() => {}, 1e6)')
  mkdirSync(join(directory, 'data'))
  // Like a /tmp or data directory that is a symbolic link.
  symlinkSync(join(directory, 'data'), join(directory, 'link'))
  const exits: string[] = []
  const start = () => {
    const processes = new ProcessPool({
      launcher: [process.execPath, program],
      environmentOf: async () => ({ PATH: process.env.PATH }),
      outputDirectory: join(directory, 'link', 'workers'),
      log: silentLog,
    })
    processes.listen({
      exited: (worker, code, trouble) => exits.push(`${worker} ${code} ${trouble?.reason ?? ''}`),
      observed: () => {},
    })
    return processes
  }
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return { start, exits, directory }
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
