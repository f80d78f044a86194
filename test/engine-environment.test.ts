// biome-ignore-all lint/suspicious/noTemplateCurlyInString: shell parameters look like JavaScript templates
/** Which credentials reach engines: those of the worker's environment that the pool lists, and those of Secrets that the Stack names. */
import { deepEqual, doesNotMatch, equal, match, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { runOarlock } from './support/run-program.ts'
import { StackFixture } from './support/stacks.ts'

const launcher = join(import.meta.dirname, '..', 'bin', 'oarlock.js')
const accessKey = 'worker-access-key-1234'
const password = 'stack-database-password'

describe('environment of engines', () => {
  const dataDir = makeDataDir()
  let oarlock: OarlockProcess
  let stacks: StackFixture

  before(async () => {
    oarlock = await startOarlock(dataDir, [], { AWS_SECRET_ACCESS_KEY: accessKey, AWS_REGION: 'eu-central-1', GOOGLE_PROJECT: 'acme' })
    stacks = new StackFixture(oarlock.client)
    const spec = { mode: 'Process' as const, max: 1, engineEnvironment: ['AWS_*', 'O*'] }
    await oarlock.client.resource(workerPoolResource).create({ metadata: { name: 'cloud' }, spec })
    await oarlock.client
      .resource(secretResource)
      .create({ metadata: { name: 'database', namespace: 'default' }, data: { password: Buffer.from(password).toString('base64') } })
  })
  after(async () => {
    await oarlock?.stop()
    removeDirectory(dataDir)
  })

  /** Applies a Stack whose engine prints its environment; returns the log and, as outputs, what can be compared without showing it. */
  async function environmentIn(name: string, more: Partial<StackSpec>) {
    const script = [
      'echo "key=${AWS_SECRET_ACCESS_KEY-unset} region=${AWS_REGION-unset} project=${GOOGLE_PROJECT-unset}"',
      'echo "password=${PASSWORD-unset} token=${OARLOCK_TOKEN-unset} server=${OARLOCK_SERVER-unset}"',
      'printf \'{"keyLength": %s, "passwordLength": %s}\' "${#AWS_SECRET_ACCESS_KEY}" "${#PASSWORD}" > "$OARLOCK_OUTPUTS"',
    ].join('\n')
    await stacks.create(name, {
      engine: 'command',
      source: { inline: { files: { 'apply.sh': script } } },
      command: { apply: ['sh', 'apply.sh'] },
      ...more,
    })
    const { status } = await stacks.untilReady(name)
    const { code, stdout, stderr } = await runOarlock(['logs', `stack/${name}`, '--kubeconfig', oarlock.kubeconfig])
    equal(code, 0, stderr)
    return { log: stdout, outputs: status?.outputs }
  }

  test('a pool without engineEnvironment passes no variables of the worker, except those to reach the network', async () => {
    const { log, outputs } = await environmentIn('plain', {})
    match(log, /key=unset region=unset project=unset/)
    match(log, /password=unset token=unset server=unset/)
    deepEqual(outputs, { keyLength: 0, passwordLength: 0 })
  })

  test('engineEnvironment passes the variables it selects and never OARLOCK_*; their values are masked in the log', async () => {
    const { log, outputs } = await environmentIn('cloud', { pool: 'cloud' })
    match(log, /key=\*\*\* region=eu-central-1 project=unset/)
    match(log, /token=unset server=unset/)
    doesNotMatch(log, new RegExp(accessKey), 'invariant 9')
    deepEqual(outputs, { keyLength: accessKey.length, passwordLength: 0 })
  })

  test('spec.env of a Stack takes a value from a Secret and wins over the pool; it is masked in the log', async () => {
    const { log, outputs } = await environmentIn('own-secret', {
      pool: 'cloud',
      env: [
        { name: 'PASSWORD', secretKeyRef: { name: 'database', key: 'password' } },
        { name: 'AWS_SECRET_ACCESS_KEY', secretKeyRef: { name: 'database', key: 'password' } },
      ],
    })
    match(log, /key=\*\*\* region=eu-central-1/)
    match(log, /password=\*\*\*/)
    doesNotMatch(log, new RegExp(password), 'invariant 9')
    deepEqual(outputs, { keyLength: password.length, passwordLength: password.length })
  })

  test('terminal escapes of a program do not reach the terminal, neither in its log nor in the condition that quotes it', async () => {
    const apply = ['sh', '-c', "printf '\\033]0;owned\\007\\033[2Jcleared\\n' >&2; exit 1"]
    await stacks.create('escapes', { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply }, retry: { limit: 0 } })
    await stacks.until(
      'escapes',
      'the Stack to fail',
      ({ status }) => status?.conditions?.some(({ message }) => message?.includes('cleared')) === true,
    )
    for (const args of [
      ['logs', 'stack/escapes'],
      ['describe', 'stack', 'escapes'],
    ]) {
      const { code, stdout, stderr } = await runOarlock([...args, '--kubeconfig', oarlock.kubeconfig])
      equal(code, 0, stderr)
      match(stdout, /\\u001b\]0;owned\\u0007\\u001b\[2Jcleared/)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: terminal escapes
      doesNotMatch(stdout + stderr, /[\u0007\u001b]/)
    }
  })

  test('a worker that joined an External pool applies the setting of the pool to its own environment', async t => {
    const spec = { mode: 'External' as const, engineEnvironment: ['AWS_*'] }
    await oarlock.client.resource(workerPoolResource).create({ metadata: { name: 'edge' }, spec })
    const { stdout: token } = await runOarlock(['token', 'create', '--pool', 'edge', '--kubeconfig', oarlock.kubeconfig])
    const args = [launcher, 'worker', '--server', oarlock.client.server, '--name', 'edge-1']
    const home = join(dataDir, 'edge')
    const worker = spawn(process.execPath, args, {
      stdio: 'ignore',
      env: {
        PATH: process.env.PATH,
        OARLOCK_TOKEN: token.trim(),
        OARLOCK_RUNS_DIR: join(home, 'runs'),
        OARLOCK_CACHE_DIR: join(home, 'cache'),
        AWS_SECRET_ACCESS_KEY: 'edge-access-key',
        AWS_REGION: 'us-east-1',
        GOOGLE_PROJECT: 'acme',
      },
    })
    t.after(async () => {
      worker.kill('SIGTERM')
      if (worker.exitCode === null && worker.signalCode === null) await once(worker, 'exit')
    })
    const { log, outputs } = await environmentIn('edge', { pool: 'edge' })
    match(log, /key=\*\*\* region=us-east-1 project=unset/)
    deepEqual(outputs, { keyLength: 'edge-access-key'.length, passwordLength: 0 })
  })

  for (const [pattern, message] of [
    ['*', /spec\.engineEnvironment\[0\].*should match/],
    ['AWS-*', /spec\.engineEnvironment\[0\].*should match/],
    ['OARLOCK_TOKEN', /spec\.engineEnvironment\[0\].*must not select HOME, TMPDIR or OARLOCK_\*, which are never passed to engines/],
  ] as const) {
    test(`rejects a WorkerPool with engineEnvironment ${pattern}`, async () => {
      const pools = oarlock.client.resource(workerPoolResource)
      await rejects(pools.create({ metadata: { name: 'bad' }, spec: { mode: 'Process', engineEnvironment: [pattern] } }), { message })
    })
  }
})
