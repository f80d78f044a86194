/**
 * A process that may open few files, and has opened them all: calls the stores and starts a worker, closes the files, and does the same
 * again. Prints what each call returned as JSON. The argument is an empty directory.
 */
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import type { WorkerPool } from '../../src/api/index.ts'
import { ProcessPool } from '../../src/app/process-pool/process-pool.ts'
import { silentLog } from '../../src/kubernetes/util/index.ts'
import { openLogStore } from '../../src/stores/log/index.ts'
import { openStateStore } from '../../src/stores/state/index.ts'

const directory = process.argv[2]!
const key = { namespace: 'apps', run: 'net-1' }
const logsDirectory = join(directory, 'logs')
const state = await openStateStore({ directory: join(directory, 'state'), key: Buffer.alloc(32, 1), idleTimeoutMs: 1 })
const pool = new ProcessPool({
  launcher: [process.execPath, '-e', ''],
  environmentOf: async () => ({}),
  outputDirectory: join(directory, 'workers'),
  log: silentLog,
})
pool.listen({ exited: () => {}, observed: () => {} })
const log = openLogStore({ directory: logsDirectory })
await log.append(key, 0, Buffer.from('one\n'))
await log.end(key)

async function callAll(): Promise<Record<string, string>> {
  const outcome = (call: Promise<unknown>) =>
    call.then(
      value => JSON.stringify(value),
      (error: Error) => error.message,
    )
  const fresh = openLogStore({ directory: logsDirectory })
  return {
    log: await outcome(fresh.append(key, 0, Buffer.from('one\n'))),
    state: await outcome(state.currentLock('uid').then(() => 'no lock')),
    worker: await outcome(pool.start({ metadata: { name: 'default' }, spec: {} } as WorkerPool, 'default-1').then(() => 'started')),
    workers: pool
      .running()
      .map(({ name }) => name)
      .join(),
  }
}

// The thread of the state store ends when it is idle.
await new Promise(resolve => setTimeout(resolve, 300))
const files: number[] = []
try {
  for (;;) files.push(openSync('/dev/null', 'r'))
} catch {}
const exhausted = await callAll()
for (const file of files) closeSync(file)
const recovered = await callAll()
console.log(JSON.stringify({ exhausted, recovered }))
await Promise.all([state.close(), log.close(), pool.whenEmpty(10_000)])
