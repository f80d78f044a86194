/** Stacks of engine pulumi whose state is in the user's own backend (`state: External`), with the real CLI, which PULUMI_BIN names. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type Stack, type StackSpec, workerPoolResource } from '../src/api/index.ts'
import { probeIsolation } from '../src/execution/workspace/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { freePorts } from './support/free-ports.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { removeDirectory } from './support/oarlock-process.ts'
import { condition, isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi, OARLOCK_VERSITYGW: gateway } = process.env
const skip = pulumi === undefined && 'PULUMI_BIN is not set'
const sandbox = await probeIsolation('Sandbox')

const program = (length: number) => ({
  inline: {
    files: {
      'Pulumi.yaml': `
name: shop
runtime: yaml
config:
  greeting: { type: string }
resources:
  random:
    type: testprovider:index:Random
    properties: { length: ${length} }
outputs:
  result: "\${greeting} \${random.result}"
  hidden: { "fn::secret": "\${greeting} in secret" }
`,
    },
  },
})

/** Each creation is recorded in the ledger; "slow" takes a while. */
const slowProgram = (ledger: string, seconds: number) => ({
  inline: {
    files: {
      'Pulumi.yaml': `
name: slow
runtime: yaml
resources:
  slow:
    type: command:local:Command
    properties: { create: "echo begins >> ${ledger}; sleep ${seconds}; echo ends >> ${ledger}" }
`,
    },
  },
})

/** The CLI that executes `pulumi up` on a stack. */
function pidOfUp(stack: string): number | undefined {
  const found = readdirSync('/proc').find(name => {
    if (!/^[0-9]+$/.test(name)) return false
    try {
      const [path = '', first, ...rest] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      return path.endsWith('/pulumi') && first === 'up' && rest.includes(`--stack=${stack}`)
    } catch {
      return false
    }
  })
  return found === undefined ? undefined : Number(found)
}

const killUp = async (stack: string) =>
  process.kill(await eventually(async () => pidOfUp(stack), `pulumi up of ${stack}`, 10_000), 'SIGKILL')

describe('stacks of engine pulumi with state External', { skip, concurrency: 2 }, () => {
  const up = useOarlock({ args: ['--max-workers', '3'], env: { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}` } })
  const { stacks, oarlock, succeeds } = up
  const files = mkdtempSync(join(tmpdir(), 'oarlock-external-'))
  const url = `file://${files}`
  const locks = (project: string, stack: string, root = files) => {
    const directory = join(root, '.pulumi/locks/organization', project, stack)
    return existsSync(directory) ? readdirSync(directory).filter(name => name.endsWith('.json')) : []
  }

  before(async () => {
    await up.client.resource(secretResource).create({
      metadata: { name: 'backend', namespace: 'default' },
      data: { passphrase: Buffer.from('open sesame').toString('base64') },
    })
    await up.client
      .resource(workerPoolResource)
      .patch('default', { spec: { allowedNetworks: ['Host', 'Private', 'None'] } }, { type: 'merge' })
  })
  after(async () => {
    removeDirectory(files)
  })

  const env = (backend = url): NonNullable<StackSpec['env']> => [
    { name: 'PULUMI_BACKEND_URL', value: backend },
    { name: 'PULUMI_CONFIG_PASSPHRASE', secretKeyRef: { name: 'backend', key: 'passphrase' } },
  ]
  const create = async (name: string, spec: Partial<StackSpec> = {}) =>
    await stacks.create(name, { engine: 'pulumi', state: 'External', env: env(), source: program(8), ...spec } as StackSpec)
  const outputsOf = ({ status }: Stack) => (status?.outputs ?? {}) as Record<string, string>
  const hasCondition = (type: string, reason: string) => (stack: Stack) =>
    condition(stack, type)?.status === 'True' && condition(stack, type)?.reason === reason
  /** What a user does by hand, with the same backend. */
  const byHand = (directory: string, ...args: string[]) =>
    promisify(execFile)(pulumi ?? '', [...args, '--non-interactive', '--color', 'never'], { cwd: directory, env: handEnv })
  const handEnv = {
    ...{ PATH: `${dirname(pulumi ?? '')}:/usr/bin:/bin`, HOME: files, PULUMI_HOME: join(files, 'home'), PULUMI_BACKEND_URL: url },
    ...{ PULUMI_CONFIG_PASSPHRASE: 'open sesame', PULUMI_SKIP_UPDATE_CHECK: 'true' },
  }

  test('a program is applied, changed, refreshed and destroyed with its state in files, and Oarlock stores none', async () => {
    await create('shop', { variables: { greeting: 'hello' } })
    const first = await stacks.until('shop', 'Ready', isReady, 90_000)
    match(outputsOf(first).result ?? '', /^hello .{8}$/)
    equal(outputsOf(first).hidden, undefined)
    equal(first.status?.resources, 1)
    const secret = await up.client.resource(secretResource).get('shop-outputs', { namespace: 'default' })
    equal(JSON.parse(Buffer.from(secret.data?.hidden ?? '', 'base64').toString()), 'hello in secret')
    const state = readFileSync(join(files, '.pulumi/stacks/shop/shop.json'), 'utf8')
    doesNotMatch(state, /in secret/)
    match(state, /"passphrase"/)
    const salt = /"salt": ?"([^"]+)"/.exec(state)?.[1]

    await stacks.patch('shop', { spec: { source: program(4) } })
    const second = await stacks.until('shop', 'changed', each => isReady(each) && /^hello .{4}$/.test(outputsOf(each).result ?? ''), 90_000)
    deepEqual({ ...(await stacks.runsOf('shop')).at(-1)?.status?.plan, digest: '' }, { digest: '', add: 1, change: 0, destroy: 1 })
    equal(second.status?.resources, 1)
    equal(/"salt": ?"([^"]+)"/.exec(readFileSync(join(files, '.pulumi/stacks/shop/shop.json'), 'utf8'))?.[1], salt)

    await succeeds('run', 'shop', '--wait')
    equal((await stacks.runsOf('shop')).at(-1)?.status?.message, 'no changes')
    await succeeds('run', 'shop', '--refresh-only', '--wait')
    equal((await stacks.runsOf('shop')).at(-1)?.spec.type, 'Refresh')
    const plan = await succeeds('plan', 'shop')
    match(plan.text, /no changes/i)

    const noState = await oarlock('state', 'show', 'shop')
    equal(noState.code === 0, false)
    await succeeds('delete', 'stack', 'shop')
    await stacks.untilDeleted('shop', 90_000)
    doesNotMatch(readFileSync(join(files, '.pulumi/stacks/shop/shop.json'), 'utf8'), /testprovider:index:Random/)
  })

  test('the lock of a killed CLI is removed by the next Run, which reports what was interrupted', async () => {
    const ledger = join(files, 'killed')
    await create('killed', { source: slowProgram(ledger, 8) })
    await eventually(async () => existsSync(ledger), 'the slow creation', 90_000)
    equal(locks('slow', 'killed').length, 1)
    await killUp('killed')
    const stalled = await stacks.until('killed', 'Stalled', hasCondition('Stalled', 'PendingCreates'), 120_000)
    match(condition(stalled, 'Stalled')?.message ?? '', /command:local:Command slow/)
    equal(locks('slow', 'killed').length, 1)
    await stacks.patch('killed', { spec: { pulumi: { pendingCreates: 'Clear' } } })
    await stacks.until('killed', 'Ready', isReady, 120_000)
    const [interrupted] = await stacks.runsOf('killed')
    const log = await succeeds('logs', 'killed')
    match(log.text, new RegExp(`removed the lock of the backend that Run ${interrupted?.metadata.name} has left, which has ended`))
    deepEqual(locks('slow', 'killed'), [])
    deepEqual(readFileSync(ledger, 'utf8').split('\n').filter(Boolean), ['begins', 'begins', 'ends'])
  })

  test('the lock of someone else stays, and is reported with host, user, process and time', async () => {
    const directory = mkdtempSync(join(files, 'hand-'))
    const ledger = join(files, 'foreign')
    const { 'Pulumi.yaml': text } = slowProgram(ledger, 600).inline.files
    await writeFile(join(directory, 'Pulumi.yaml'), text)
    await byHand(directory, 'stack', 'init', 'foreign')
    const child = spawn(pulumi ?? '', ['up', '--yes', '--skip-preview', '--non-interactive', '--stack', 'foreign'], {
      ...{ cwd: directory, env: handEnv, detached: true, stdio: 'ignore' },
    })
    await eventually(async () => existsSync(ledger), 'the slow creation', 90_000)
    const closed = once(child, 'close')
    process.kill(-(child.pid ?? 0), 'SIGKILL')
    await closed
    const [lock] = locks('slow', 'foreign')

    await create('foreign', { source: slowProgram(join(files, 'other'), 0), pulumi: { pendingCreates: 'Clear' } })
    const run = await stacks.untilRun('foreign', 'the failure', each => each.status?.phase === 'Failed', 90_000)
    equal(run.status?.reason, 'StateLocked')
    const { pid, username, hostname } = JSON.parse(
      readFileSync(join(files, '.pulumi/locks/organization/slow/foreign', lock ?? ''), 'utf8'),
    ) as Record<string, string>
    match(
      run.status?.message ?? '',
      new RegExp(`locked in its backend: it is locked by ${username}@${hostname} \\(pid ${pid}\\) since \\d{4}-.*${lock}.*pulumi cancel`),
    )
    deepEqual(locks('slow', 'foreign'), [lock])
    equal((await stacks.get('foreign')).status?.failures, undefined)
    await byHand(directory, 'cancel', '--yes', '--stack', 'foreign')
    await stacks.until('foreign', 'Ready', isReady, 180_000)
  })

  test('a state whose secrets a passphrase has encrypted is imported, and its Runs use that passphrase until it is encrypted for the Stack', async () => {
    const directory = mkdtempSync(join(files, 'hand-'))
    const { 'Pulumi.yaml': text } = program(8).inline.files
    await writeFile(join(directory, 'Pulumi.yaml'), text)
    await byHand(directory, 'stack', 'init', 'moved')
    await byHand(directory, 'config', 'set', 'greeting', 'hello', '--stack', 'moved')
    await byHand(directory, 'up', '--yes', '--skip-preview', '--stack', 'moved')
    await create('moved', { state: 'Managed', suspend: true, env: [], variables: { greeting: 'hello' } })
    const file = join(files, '.pulumi/stacks/shop/moved.json')
    const imported = await succeeds('state', 'import', 'moved', '--from', file, '--yes')
    match(imported.text, /its secrets are encrypted with passphrase: Runs need what that provider needs, such as PULUMI_CONFIG_PASSPHRASE/)
    equal((await oarlock('state', 'pull', 'moved', '--show-secrets')).code, 4)
    await stacks.patch('moved', { spec: { suspend: false } })
    const failed = await stacks.untilRun('moved', 'the failure', each => each.status?.phase === 'Failed', 90_000)
    match(
      failed.status?.message ?? '',
      /encrypted with a passphrase, which this Run does not have: set PULUMI_CONFIG_PASSPHRASE with spec.env/,
    )
    await stacks.patch('moved', { spec: { env: env().slice(1) } })
    const stack = await stacks.until('moved', 'Ready', isReady, 120_000)
    match(outputsOf(stack).result ?? '', /^hello .{8}$/)
    const outputs = async () => (await up.client.resource(secretResource).get('moved-outputs', { namespace: 'default' })).data?.hidden ?? ''
    equal(JSON.parse(Buffer.from(await outputs(), 'base64').toString()), 'hello in secret')
    const plans = (await stacks.runsOf('moved')).flatMap(({ status }) => status?.plan ?? [])
    deepEqual([...new Set(plans.map(({ add, change, destroy }) => `${add} ${change} ${destroy}`))], ['0 0 0'])

    await stacks.patch('moved', { spec: { variables: { greeting: 'hi' } } })
    await stacks.until('moved', 'changed', each => isReady(each) && /^hi /.test(outputsOf(each).result ?? ''), 120_000)
    match((await succeeds('state', 'pull', 'moved', '--show-secrets')).text, /hi in secret/)
  })

  describe('with a bucket', { skip: gateway === undefined && 'OARLOCK_VERSITYGW is not set' }, () => {
    const buckets = mkdtempSync(join(tmpdir(), 'oarlock-buckets-'))
    let server: ChildProcess
    let port = 0
    before(async () => {
      mkdirSync(join(buckets, 'states'))
      port = (await freePorts(1))[0] as number
      server = spawn(gateway ?? '', ['--port', `127.0.0.1:${port}`, '--access', 'user', '--secret', 'password', 'posix', buckets], {
        stdio: 'ignore',
      })
      await eventually(
        async () =>
          await fetch(`http://127.0.0.1:${port}/`).then(
            each => each.status > 0,
            () => false,
          ),
        'the gateway',
        30_000,
      )
    })
    after(async () => {
      const closed = once(server, 'close')
      server.kill('SIGKILL')
      await closed
      removeDirectory(buckets)
    })
    const bucketEnv = (): NonNullable<StackSpec['env']> => [
      ...env(`s3://states?endpoint=127.0.0.1:${port}&disableSSL=true&s3ForcePathStyle=true&region=us-east-1`),
      { name: 'AWS_ACCESS_KEY_ID', value: 'user' },
      { name: 'AWS_SECRET_ACCESS_KEY', value: 'password' },
    ]

    for (const level of ['Process', 'Sandbox'] as const) {
      const name = `bucket-${level.toLowerCase()}`
      const isolation = level === 'Sandbox' ? { level, network: 'Host' as const } : { level }
      test(`at level ${level} the lock of a killed CLI is removed by the next Run`, {
        skip: level === 'Sandbox' && !sandbox.available && sandbox.reason,
      }, async () => {
        const ledger = level === 'Sandbox' ? '/tmp/ledger' : join(files, name)
        await create(name, { env: bucketEnv(), isolation, source: slowProgram(ledger, 8), pulumi: { pendingCreates: 'Clear' } })
        // Creating the stack locks it for a moment too.
        await eventually(async () => pidOfUp(name) !== undefined, 'pulumi up', 90_000)
        await eventually(async () => locks('slow', name, join(buckets, 'states')).length === 1, 'the lock', 10_000)
        const [lock] = locks('slow', name, join(buckets, 'states'))
        const path = join(buckets, 'states/.pulumi/locks/organization/slow', name, lock ?? '')
        const { hostname } = JSON.parse(readFileSync(path, 'utf8')) as { hostname: string }
        const { uid } = (await stacks.get(name)).metadata
        if (level === 'Sandbox') equal(hostname, `oarlock-${uid}-1`)
        await killUp(name)
        await stacks.until(name, 'Ready', isReady, 180_000)
        match((await succeeds('logs', name)).text, /removed the lock of the backend that .* has left, which has ended/)
        deepEqual(locks('slow', name, join(buckets, 'states')), [])
      })
    }
  })
})
