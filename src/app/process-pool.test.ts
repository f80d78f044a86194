import { deepEqual, equal, rejects } from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { eventually } from '../../test/support/eventually.ts'
import type { WorkerPool } from '../api/index.ts'
import { silentLog } from '../kubernetes/controller/index.ts'
import { ProcessPool } from './process-pool.ts'

const pool = { metadata: { name: 'default' }, spec: { mode: 'Process' } } as WorkerPool

/** A program in place of a worker that never registers, and pools of processes that start it: each as of an `oarlock up` of its own. */
function rig(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-process-pool-'))
  const program = join(directory, 'sleeper.js')
  writeFileSync(program, 'setInterval(() => {}, 1e6)')
  mkdirSync(join(directory, 'data'))
  // As where /tmp, or the data directory, is a link.
  symlinkSync(join(directory, 'data'), join(directory, 'link'))
  const exits: string[] = []
  const start = () => {
    const processes = new ProcessPool({
      launcher: [process.execPath, program],
      environmentOf: () => ({ PATH: process.env.PATH }),
      outputDirectory: join(directory, 'link', 'workers'),
      log: silentLog,
    })
    processes.listen({
      exited: (worker, code, trouble) => exits.push(`${worker} ${code} ${trouble?.reason ?? ''}`),
      startFailing: () => {},
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

test('workers of an oarlock up that was killed are known to the next one, which is told of their end and may end them', {
  skip: process.platform !== 'linux' && 'needs /proc',
}, async t => {
  const { start, exits, directory } = rig(t)
  const before = start()
  for (const name of ['default-1', 'default-2', 'default-3']) await before.start(pool, name)
  const after = start()
  try {
    deepEqual(names(after), ['default/default-1', 'default/default-2', 'default/default-3'])
    after.stop('default-1', { force: true })
    await eventually(() => names(after).length === 2, 'its end to be seen')
    await eventually(() => exits.includes('default-1 0 CrashedOnStartup'), 'the pool to be told')
    equal(existsSync(join(directory, 'data', 'workers', 'default-1.log')), false)
    equal(await after.whenEmpty(1), false)
    // As when somebody tidies up the data directory.
    rmSync(join(directory, 'data', 'workers'), { recursive: true })
    after.drain()
    equal(await after.whenEmpty(10_000), true, 'a stop waits for them too')
    await rejects(after.start(pool, 'default-4'), /starts no more workers/)
    await eventually(() => before.running().length === 0, 'the ends of its children')
    deepEqual(names(start()), [])
  } finally {
    for (const name of ['default-1', 'default-2', 'default-3']) before.stop(name, { force: true })
    await before.whenEmpty(10_000)
  }
})
