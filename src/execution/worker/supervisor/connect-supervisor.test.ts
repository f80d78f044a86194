import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { readStartTime } from '../../workspace/process/index.ts'
import { connectToSupervisor, currentSocketName, supervisorDirectory } from './connect-supervisor.ts'
import { protocolVersion } from './supervisor-protocol.ts'
import { SupervisorUnavailableError } from './supervisor-unavailable-error.ts'

test('a supervisor that another worker starts and that does not respond in time is an error with its address and the time', async t => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'oarlock-connect-'))
  t.after(() => rmSync(cacheDir, { recursive: true, force: true }))
  const directory = supervisorDirectory(cacheDir)
  // This process holds the lock, so no supervisor is started.
  writeFileSync(join(directory, `starting.v${protocolVersion}`), `${process.pid} ${readStartTime(process.pid) ?? ''}`)
  const error = await connectToSupervisor(cacheDir, 300).then(
    () => undefined,
    thrown => thrown,
  )
  ok(error instanceof SupervisorUnavailableError)
  equal(error.address, join(directory, currentSocketName))
  ok(error.waitedMs >= 300)
  match(
    error.message,
    /^the supervisor at .*\/supervisor\.v\d+\.sock did not respond within \d+(\.\d)? s; check the load, memory and process/,
  )
})

test('the error names why a supervisor could not be started, or what happened instead', () => {
  const cause = new Error('spawn node EAGAIN')
  const messageOf = (options: object) =>
    new SupervisorUnavailableError({ address: '/s', waitedMs: 15_040, ...options }).message.split(';')[0]
  deepEqual(
    [messageOf({ cause }), messageOf({ problem: 'ended each time shortly after its start' })],
    [
      'the supervisor at /s did not respond within 15 s (spawn node EAGAIN)',
      'the supervisor at /s ended each time shortly after its start',
    ],
  )
})
