/** `oarlock up` and its workers over the Unix socket in the data directory, also after SIGKILL, and over TLS where the path is too long. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { systemNamespace } from '../src/api/index.ts'
import { workerExitCodes } from '../src/execution/worker/index.ts'
import { leaseResource } from '../src/kubernetes/client/index.ts'
import { unixSocketUrl } from '../src/kubernetes/util/index.ts'
import { eventually } from './support/eventually.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock, runProgram } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

async function start(t: TestContext, dataDir: string): Promise<OarlockProcess> {
  const oarlock = await startOarlock(dataDir)
  t.after(() => oarlock.kill())
  return oarlock
}

function newDataDir(t: TestContext): string {
  const directory = makeDataDir()
  t.after(() => removeDirectory(directory))
  return directory
}

/** Applies a Stack, and returns what its engine saw of its worker's environment. */
async function applyStack({ client, kubeconfig }: OarlockProcess, name: string, dataDir: string, script = ''): Promise<string[]> {
  const stacks = new StackFixture(client)
  const seen = join(dataDir, `${name}.seen`)
  const apply = `tr '\\0' '\\n' < /proc/$PPID/environ | grep -E '^OARLOCK_(SERVER|STORE_URL|CA_FILE)=' > ${seen}; echo hello from ${name}; ${script}`
  await stacks.create(name, { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['sh', '-c', apply] } })
  await stacks.untilReady(name)
  const { text } = await runOarlock(['logs', name], { env: { KUBECONFIG: kubeconfig } })
  match(text, new RegExp(`hello from ${name}`))
  return readFileSync(seen, 'utf8').trimEnd().split('\n')
}

test('workers of oarlock up use the Unix socket; after SIGKILL the next process replaces it, and SIGTERM removes it', async t => {
  const dataDir = newDataDir(t)
  const path = join(dataDir, 'api.sock')
  const first = await start(t, dataDir)
  equal(statSync(path).mode & 0o777, 0o600)
  deepEqual(await applyStack(first, 'first', dataDir), [`OARLOCK_SERVER=${unixSocketUrl(path)}`])
  await first.kill()
  equal(statSync(path).isSocket(), true)
  const second = await start(t, dataDir)
  deepEqual(await applyStack(second, 'second', dataDir), [`OARLOCK_SERVER=${unixSocketUrl(path)}`])
  equal(await second.stop(), 0)
  equal(existsSync(path), false)
})

test('a worker renews its Lease over the Unix socket, and continues when the server is killed and started again', async t => {
  const dataDir = newDataDir(t)
  const first = await start(t, dataDir)
  const stop = join(dataDir, 'stop')
  const applying = applyStack(first, 'long', dataDir, `touch ${stop}.started; while [ ! -e ${stop} ]; do sleep 0.05; done`)
  // It loses its server; what matters is the Run.
  applying.catch(() => {})
  await eventually(() => existsSync(`${stop}.started`), 'the engine to start')
  const renewedAt = async ({ client }: OarlockProcess) =>
    (await client.resource(leaseResource).listAll({ namespace: systemNamespace })).items
      .filter(({ metadata }) => metadata.name.startsWith('default-'))
      .map(({ metadata, spec }) => `${metadata.name} ${spec?.renewTime}`)
      .join()
  const untilRenewed = async (oarlock: OarlockProcess) => {
    const before = await renewedAt(oarlock)
    match(before, /^default-\S+ \S+$/)
    await eventually(async () => (await renewedAt(oarlock)) !== before, 'the Lease to be renewed')
  }
  await untilRenewed(first)
  await first.kill()
  const second = await start(t, dataDir)
  await untilRenewed(second)
  writeFileSync(stop, '')
  const stacks = new StackFixture(second.client)
  await stacks.untilReady('long')
  equal((await stacks.runsOf('long')).length, 1)
  equal(await second.stop(), 0)
})

test('where the path of the socket is too long, workers use TLS', async t => {
  const dataDir = join(newDataDir(t), 'x'.repeat(100))
  mkdirSync(dataDir, { mode: 0o700 })
  const oarlock = await start(t, dataDir)
  const [server, ca] = await applyStack(oarlock, 'tls', dataDir)
  match(server ?? '', /^OARLOCK_SERVER=https:\/\/127\.0\.0\.1:\d+$/)
  equal(ca, `OARLOCK_CA_FILE=${join(dataDir, 'pki', 'ca.crt')}`)
  match(readFileSync(join(dataDir, 'oarlock.log'), 'utf8'), /cannot listen on the Unix socket: local clients use TLS/)
  equal(existsSync(join(dataDir, 'api.sock')), false)
})

test('a worker loads neither TLS nor node:crypto nor node:http before its first request, because each takes milliseconds of its start', async t => {
  const directory = newDataDir(t)
  const list = join(directory, 'list.cjs')
  writeFileSync(
    list,
    `process.on('exit', () => console.log(process.moduleLoadList.filter(name => name.startsWith('NativeModule ')).join()))`,
  )
  const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
  const env = { OARLOCK_SERVER: unixSocketUrl(join(directory, 'missing.sock')), OARLOCK_TOKEN: 'token' }
  const { code, stdout } = await runProgram(process.execPath, ['--require', list, launcher, 'worker', '--once'], { env })
  equal(code, workerExitCodes.notRegistered)
  const loaded = stdout.split(/[,\n]/)
  ok(loaded.includes('NativeModule net'))
  deepEqual(
    loaded.filter(name => /^NativeModule (tls|https?|crypto)$/.test(name)),
    [],
  )
})
