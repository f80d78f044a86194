/** Stacks of engine pulumi with the real CLI, which PULUMI_BIN names: `oarlock` against one `oarlock up`. */
import { deepEqual, doesNotMatch, equal, match } from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, test } from 'node:test'
import { type Stack, type StackSpec, workerResource } from '../src/api/index.ts'
import { privateNetworkProblem, probeIsolation } from '../src/execution/workspace/index.ts'
import { secretResource } from '../src/kubernetes/client/index.ts'
import { eventually } from './support/eventually.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { condition, isReady } from './support/stacks.ts'

const { PULUMI_BIN: pulumi } = process.env
/** The plugin "testprovider" is that of Pulumi's own tests. */
const skip = pulumi === undefined && 'PULUMI_BIN is not set'

const yamlProgram = (length: number, prefix = '') => ({
  inline: {
    files: {
      'Pulumi.yaml': `
name: shop
runtime: yaml
config:
  greeting: { type: string }
  password: { type: string, default: none }
resources:
  random:
    type: testprovider:index:Random
    properties: { length: ${length} }
  echo:
    type: testprovider:index:Echo
    properties: { echo: "\${greeting} \${password}" }
outputs:
  result: "${prefix}\${random.result}"
  echo: \${echo.echo}
`,
    },
  },
})

const nodeProgram = (size: number) => ({
  inline: {
    files: {
      'Pulumi.yaml': 'name: things\nruntime: { name: nodejs, options: { typescript: false } }\n',
      'package.json': '{"name":"things","main":"index.js","dependencies":{"@pulumi/pulumi":"3.260.0"}}',
      'index.js': `
const pulumi = require('@pulumi/pulumi')
const provider = {
  async create(inputs) { return { id: inputs.key, outs: inputs } },
  async diff(id, before, after) { return { changes: before.size !== after.size } },
  async update(id, before, after) { return { outs: after } },
  async delete() {},
}
class Thing extends pulumi.dynamic.Resource {
  constructor(name, args) { super(provider, name, args) }
}
const things = Array.from({ length: new pulumi.Config().requireNumber('count') }, (_, i) => new Thing('thing-' + i, { key: 'id-' + i, size: ${size} }))
exports.names = things.map(each => each.id)
exports.hidden = pulumi.secret('top secret value')
`,
    },
  },
})

/** Records what it creates: "slow" takes 4 s, and begins when "first" exists. */
const slowProgram = (ledger: string) => ({
  inline: {
    files: {
      'Pulumi.yaml': `
name: slow
runtime: yaml
resources:
  first:
    type: command:local:Command
    properties: { create: "echo first >> ${ledger}" }
  slow:
    type: command:local:Command
    properties: { create: "echo slow begins >> ${ledger}; sleep 4; echo slow ends >> ${ledger}" }
    options: { dependsOn: ["\${first}"] }
`,
    },
  },
})

/** The CLI that executes a command on a stack. */
function pidOf(command: string, stack: string): number {
  const found = readdirSync('/proc').find(name => {
    if (!/^[0-9]+$/.test(name)) return false
    try {
      const [program = '', first, ...rest] = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      return program.endsWith('/pulumi') && first === command && rest.some(each => each.endsWith(`/${stack}`))
    } catch {
      return false
    }
  })
  if (found === undefined) throw new Error(`no pulumi ${command} of ${stack} is running`)
  return Number(found)
}

const sandbox = await probeIsolation('Sandbox')
const sandboxProblem = sandbox.available ? (privateNetworkProblem(sandbox.sandbox?.slirp4netns) ?? false) : sandbox.reason

describe('stacks of engine pulumi', { skip, concurrency: 2 }, () => {
  const up = useOarlock({ args: ['--max-workers', '3'], env: { PATH: `${dirname(pulumi ?? '')}:${process.env.PATH}` } })
  const { stacks, oarlock, succeeds } = up

  const create = async (name: string, spec: Partial<StackSpec> = {}) =>
    await stacks.create(name, { engine: 'pulumi', source: yamlProgram(8), variables: { greeting: 'hello' }, ...spec })
  const outputsOf = ({ status }: Stack) => (status?.outputs ?? {}) as Record<string, string>

  test('a YAML program is applied, changed, and destroyed with its Stack', async () => {
    await create('shop')
    const first = await stacks.until('shop', 'Ready', isReady, 90_000)
    match(outputsOf(first).result ?? '', /^.{8}$/)
    equal(outputsOf(first).echo, 'hello none')
    equal(first.status?.resources, 2)
    const [run] = await stacks.runsOf('shop')
    deepEqual({ ...run?.status?.plan, digest: '' }, { digest: '', add: 2, change: 0, destroy: 0 })
    equal(run?.status?.changed, true)

    // Only an output changes.
    await stacks.patch('shop', { spec: { source: yamlProgram(8, 'x-') } })
    const second = await stacks.until(
      'shop',
      'the new output',
      each => isReady(each) && outputsOf(each).result?.startsWith('x-') === true,
      90_000,
    )
    equal(outputsOf(second).result, `x-${outputsOf(first).result}`)

    await succeeds('run', 'shop', '--wait')
    const last = (await stacks.runsOf('shop')).at(-1)
    equal(last?.status?.changed, false)
    equal(last?.status?.message, 'no changes')

    await succeeds('delete', 'stack', 'shop')
    await stacks.untilDeleted('shop', 90_000)
  })

  test('a secret is in no log, no plan and no status, and reaches the program; its output is sensitive', async () => {
    await up.client.resource(secretResource).create({
      metadata: { name: 'credentials', namespace: 'default' },
      data: { password: Buffer.from('correct horse battery').toString('base64') },
    })
    await create('secret', { variablesFrom: [{ secretRef: { name: 'credentials' } }] })
    const stack = await stacks.until('secret', 'Ready', isReady, 90_000)
    equal(outputsOf(stack).echo, undefined)
    doesNotMatch(JSON.stringify(stack), /correct horse/)
    const outputs = await up.client.resource(secretResource).get('secret-outputs', { namespace: 'default' })
    equal(JSON.parse(Buffer.from(outputs.data?.echo ?? '', 'base64').toString()), 'hello correct horse battery')
    const log = await succeeds('logs', 'secret')
    doesNotMatch(log.text, /correct horse/)
    match(log.text, /\+ testprovider:index:Echo echo: create/)
    const [run] = await stacks.runsOf('secret')
    const plan = await succeeds('plan', '--run', run?.metadata.name ?? '')
    doesNotMatch(plan.text, /correct horse/)
    match(plan.text, /testprovider:index:Random: \(create\)/)
  })

  test('an output that differs in each execution is applied, and is named where an approved plan binds the update', {
    timeout: 600_000,
  }, async () => {
    const files = {
      ...nodeProgram(1).inline.files,
      'index.js': 'exports.at = String(process.hrtime.bigint())',
    }
    await create('clock', { source: { inline: { files } }, variables: {} })
    const stack = await stacks.until('clock', 'Ready', isReady, 400_000)
    match(outputsOf(stack).at ?? '', /^\d+$/)
    await create('approved-clock', { source: { inline: { files } }, variables: {}, approval: 'Manual', retry: { limit: 0 } })
    await stacks.until('approved-clock', 'awaiting approval', each => condition(each, 'AwaitingApproval')?.status === 'True', 180_000)
    await succeeds('approve', 'approved-clock', '--yes')
    const failed = await stacks.untilRun(
      'approved-clock',
      'the end',
      run => run.spec.type === 'Apply' && run.status?.phase === 'Failed',
      180_000,
    )
    equal(failed.status?.reason, 'PlanOutdated')
    match(failed.status?.message ?? '', /outputs of the program are not those of the approved plan.*such as a time/)
  })

  test('a refresh on request is a Run of its own type', async () => {
    await create('partial')
    await stacks.until('partial', 'Ready', isReady, 90_000)
    await succeeds('run', 'partial', '--refresh-only', '--wait')
    equal((await stacks.runsOf('partial')).at(-1)?.spec.type, 'Refresh')
  })

  test('a program that fails is reported with what the CLI reports, and changes nothing', async () => {
    const files = {
      'Pulumi.yaml': `name: broken\nruntime: yaml\nresources:\n  r:\n    type: testprovider:index:Random\n    properties: { length: "\${missing}" }\n`,
    }
    await create('broken', { source: { inline: { files } }, variables: {} })
    const stack = await stacks.until(
      'broken',
      'failed',
      each => condition(each, 'Ready')?.status === 'False' && each.status?.failures !== undefined,
    )
    match(condition(stack, 'Ready')?.message ?? '', /missing/)
  })

  test('a backend in the project file is rejected, with both ways out', async () => {
    const files = { 'Pulumi.yaml': 'name: elsewhere\nruntime: yaml\nbackend: { url: "s3://bucket" }\nresources: {}\n' }
    await create('elsewhere', { source: { inline: { files } } })
    const stack = await stacks.until('elsewhere', 'Stalled', each => condition(each, 'Stalled')?.status === 'True')
    equal(condition(stack, 'Stalled')?.reason, 'BackendInFiles')
    match(condition(stack, 'Stalled')?.message ?? '', /s3:\/\/bucket.*state: External.*oarlock state import/)
  })

  for (const network of ['Private', 'None'] as const) {
    test(`a program in a sandbox with network ${network} reaches its state through the relay`, { skip: sandboxProblem }, async () => {
      const name = `sandbox-${network.toLowerCase()}`
      await create(name, { isolation: { level: 'Sandbox', network } })
      const stack = await stacks.until(name, 'Ready', isReady, 90_000)
      equal(outputsOf(stack).echo, 'hello none')
      equal((await stacks.runsOf(name)).at(-1)?.status?.isolation?.network, network)
      await stacks.patch(name, { spec: { variables: { greeting: 'hi' } } })
      await stacks.until(name, 'changed', each => isReady(each) && outputsOf(each).echo === 'hi none', 90_000)
      await succeeds('delete', 'stack', name)
      await stacks.untilDeleted(name, 90_000)
    })
  }

  test('an approved plan is applied as it is, and a refresh, which cannot be bound to an approval, is rejected', async () => {
    await create('approved', { approval: 'Manual' })
    await stacks.until('approved', 'awaiting approval', each => condition(each, 'AwaitingApproval')?.status === 'True', 90_000)
    const [plan] = await stacks.runsOf('approved')
    equal(plan?.spec.type, 'Plan')
    await succeeds('approve', 'approved', '--yes')
    const stack = await stacks.until('approved', 'Ready', isReady, 90_000)
    equal(outputsOf(stack).echo, 'hello none')
    const apply = (await stacks.runsOf('approved')).at(-1)
    equal(apply?.spec.approvedPlan?.digest, plan?.status?.plan?.digest)
    equal(apply?.status?.plan?.digest, plan?.status?.plan?.digest)
    const refused = await oarlock('run', 'approved', '--refresh-only', '--wait')
    match(refused.text, /ApprovalNotBound|cannot bind a refresh/)
  })

  test('a creation that was interrupted by SIGKILL stops the Stack until a user decides, and nothing else is created again', async () => {
    const created = join(mkdtempSync(join(tmpdir(), 'oarlock-created-')), 'ledger')
    await create('killed', { source: slowProgram(created), variables: {} })
    await eventually(async () => existsSync(created) && readFileSync(created, 'utf8').includes('slow begins'), 'the slow creation', 60_000)
    process.kill(pidOf('up', 'killed'), 'SIGKILL')
    const stalled = await stacks.until('killed', 'Stalled', each => condition(each, 'Stalled')?.status === 'True', 120_000)
    equal(condition(stalled, 'Stalled')?.reason, 'PendingCreates')
    match(
      condition(stalled, 'Stalled')?.message ?? '',
      /creation of 1 resource was interrupted.*command:local:Command slow; .*pendingCreates to Clear/,
    )
    const [first] = await stacks.runsOf('killed')
    const operation = { type: 'creating', urn: 'urn:pulumi:killed::slow::command:local:Command::slow' }
    deepEqual(first?.status?.pendingOperations, { count: 1, operations: [operation] })
    match(first?.status?.message ?? '', /1 operation was interrupted, and its result is unknown: creating command:local:Command slow$/)
    await stacks.patch('killed', { spec: { pulumi: { pendingCreates: 'Clear' } } })
    const stack = await stacks.until('killed', 'Ready', isReady, 120_000)
    equal(stack.status?.resources, 2)
    deepEqual(readFileSync(created, 'utf8').split('\n').filter(Boolean), ['first', 'slow begins', 'slow begins', 'slow ends'])
  })

  test('a Run whose worker is killed is Lost with the operations that were interrupted, and with Clear the next one continues', async () => {
    const created = join(mkdtempSync(join(tmpdir(), 'oarlock-created-')), 'ledger')
    await create('lost', { source: slowProgram(created), variables: {}, pulumi: { pendingCreates: 'Clear' } })
    await eventually(async () => existsSync(created) && readFileSync(created, 'utf8').includes('slow begins'), 'the slow creation', 60_000)
    const [first] = await stacks.runsOf('lost')
    const worker = await up.client.resource(workerResource).get(first?.spec.workerName ?? '')
    process.kill(worker.status?.pid ?? 0, 'SIGKILL')
    await stacks.until('lost', 'Ready', isReady, 120_000)
    const [lost, next] = await stacks.runsOf('lost')
    equal(lost?.status?.phase, 'Lost')
    deepEqual(
      lost?.status?.pendingOperations?.operations.map(({ type, urn }) => `${type} ${urn.split('::').at(-1)}`),
      ['creating slow'],
    )
    match(lost?.status?.message ?? '', /; 1 operation was interrupted, and its result is unknown: creating command:local:Command slow$/)
    match((await oarlock('describe', 'run', lost?.metadata.name ?? '')).text, /urn:pulumi:lost::slow::command:local:Command::slow/)
    equal(next?.status?.pendingOperations, undefined)
    deepEqual(
      readFileSync(created, 'utf8')
        .split('\n')
        .filter(line => line === 'first'),
      ['first'],
    )
  })

  test('a program reads the outputs of a Stack that it names, and of no other', async () => {
    const reference = (stack: string) => ({
      inline: {
        files: {
          'Pulumi.yaml': `name: reader\nruntime: yaml\nresources:\n  other:\n    type: pulumi:pulumi:StackReference\n    properties: { name: ${stack} }\noutputs:\n  read: '\${other.outputs["echo"]}'\n`,
        },
      },
    })
    await create('referred', { pulumi: { stack: 'prod' } })
    await stacks.until('referred', 'Ready', isReady, 90_000)
    await create('reader', { source: reference('default/shop/prod'), variables: {}, dependsOn: [{ name: 'referred' }] })
    equal(outputsOf(await stacks.until('reader', 'Ready', isReady, 90_000)).read, 'hello none')
    await create('stranger', { source: reference('default/shop/prod'), variables: {} })
    const rejected = await stacks.until('stranger', 'failed', each => each.status?.failures !== undefined, 90_000)
    match(condition(rejected, 'Ready')?.message ?? '', /may not refer to default\/shop\/prod: name that Stack in spec.dependsOn/)
  })

  test('a nodejs program gets its packages, and its dynamic resources are changed and destroyed', { timeout: 600_000 }, async () => {
    await create('node', { source: nodeProgram(1), variables: { count: 3 } })
    const first = await stacks.until('node', 'Ready', isReady, 400_000)
    deepEqual([first.status?.resources, outputsOf(first).names], [3, ['id-0', 'id-1', 'id-2']])
    equal(outputsOf(first).hidden, undefined)
    await stacks.patch('node', { spec: { variables: { count: 2 } } })
    const second = await stacks.until('node', 'two resources', each => isReady(each) && each.status?.resources === 2, 180_000)
    deepEqual(outputsOf(second).names, ['id-0', 'id-1'])
    const run = (await stacks.runsOf('node')).at(-1)
    deepEqual({ ...run?.status?.plan, digest: '' }, { digest: '', add: 0, change: 0, destroy: 1 })
    await succeeds('delete', 'stack', 'node')
    await stacks.untilDeleted('node', 180_000)
  })
})
