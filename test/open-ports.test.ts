/** What a local user without a credential gets of a running `oarlock up`: every port it listens on is asked for everything. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { documentedPortCount } from './support/documented-ports.ts'
import { eventually } from './support/eventually.ts'
import { getFrom, listeningPorts, openWithoutCredential } from './support/listening-ports.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun } from './support/processes.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const stack = 'confidential'
const dataDir = makeDataDir()
let oarlock: OarlockProcess
let statusPort: number

before(async () => {
  oarlock = await startOarlock(dataDir)
  statusPort = Number(new URL(oarlock.httpUrl).port)
  const stacks = new StackFixture(oarlock.client)
  await stacks.create(stack, {
    engine: 'command',
    source: { inline: { files: { 'run.sh': '' } } },
    command: { apply: ['sh', '-c', 'while :; do sleep 0.1; done'] },
  })
  // Its worker, its supervisor and the engine run too.
  await eventually(
    async () => {
      const [run] = await stacks.runsOf(stack)
      return run !== undefined && processesOfRun(run.metadata.uid).length > 0
    },
    'the engine to run',
    60_000,
  )
})
after(async () => {
  // The second signal interrupts the engine. Sent before the first one was handled, it would be merged with it.
  oarlock?.child.kill('SIGTERM')
  try {
    await eventually(() => /waiting for 1 worker to finish/.test(oarlock?.output() ?? ''), 'the drain')
  } finally {
    await oarlock?.stop()
    removeDirectory(dataDir)
  }
})

test('every port serves only health and version without a credential', async () => {
  const ports = listeningPorts(oarlock.child.pid!)
  const apiPort = Number(new URL(oarlock.client.server).port)
  deepEqual(
    ports,
    [apiPort, statusPort].sort((a, b) => a - b),
    'ports that docs/ports.md does not list',
  )
  equal(ports.length, documentedPortCount('up'))
  deepEqual(await openWithoutCredential(ports, 'default', stack), [])
  for (const port of [apiPort, statusPort]) equal((await getFrom(port === apiPort ? 'https' : 'http', port, '/livez'))?.status, 200)
})

test('the token of the data directory reads queue and metrics', async () => {
  for (const path of ['/metrics', '/queue'])
    equal((await getFrom('http', statusPort, path, { headers: { ...oarlock.statusHeaders } }))?.status, 200)
})

test('"oarlock console" sends no token when the process does not respond, or has recorded no address', async () => {
  const stopped = makeDataDir()
  writeFileSync(join(stopped, 'console-token'), 'token-of-the-console')
  const run = async () => await runOarlock(['console', '--data', stopped])
  try {
    const unknown = await run()
    equal(unknown.code, 5, unknown.text)
    match(unknown.stderr, /failed to read .*status-url \(ENOENT\)/)
    // Nothing listens there: the port of a listener that is closed.
    const listener = createServer().listen(0, '127.0.0.1')
    await once(listener, 'listening')
    const { port } = listener.address() as AddressInfo
    listener.close()
    await once(listener, 'close')
    writeFileSync(join(stopped, 'status-url'), `http://127.0.0.1:${port}\n`)
    const down = await run()
    equal(down.code, 5, down.text)
    match(down.stderr, /the console at http:\/\/127\.0\.0\.1:\d+ does not respond \(ECONNREFUSED\)\n.*start "oarlock up"/)
    ok(!`${unknown.text}${down.text}`.includes('token-of-the-console'))
  } finally {
    removeDirectory(stopped)
  }
})

test('the token is readable by its owner only, is not in what the process prints to a pipe or its log, and reads nothing else', async () => {
  const path = join(dataDir, 'status-token')
  equal(statSync(path).mode & 0o777, 0o600)
  const token = readFileSync(path, 'utf8').trim()
  ok(!oarlock.output().includes(token))
  match(oarlock.output(), /health +http:\/\/127\.0\.0\.1:\d+$/m)
  const apiPort = Number(new URL(oarlock.client.server).port)
  equal((await getFrom('https', apiPort, '/api/v1/namespaces', { headers: { ...oarlock.statusHeaders } }))?.status, 401)
  equal((await getFrom('http', statusPort, `/state/default/${stack}`, { headers: { ...oarlock.statusHeaders } }))?.status, 401)
})
