/**
 * A repository with 30 root modules and 36 existing states is moved in, changed, approved, drifts, is backed up, restored, upgraded and moved out, through the
 * command line. No resource is created twice, and nothing is approved that was not shown.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import type { Stack, StackSpec } from '../../src/api/index.ts'
import { secretResource } from '../../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../../src/kubernetes/object/index.ts'
import { checkOutVersion, skipWithoutCommit } from '../support/earlier-version.ts'
import { GitRepository } from '../support/git-repository.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startUp } from '../support/oarlock-process.ts'
import { runProgram, skipWithoutTerraformEngine, terraformEngine } from '../support/run-program.ts'
import { condition, isReady, StackFixture } from '../support/stacks.ts'
import { type Deployment, environments, Infrastructure, type Stage } from './infrastructure.ts'

/** The last commit of the version that the test upgrades from. */
const earlierCommit = 'c182e105d7781101f3c4fcd9588be3e094d528bc'
const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')
const base = makeDataDir()
const at = (name: string) => join(base, name)
const infrastructure = new Infrastructure(at('cloud'))
const { deployments } = infrastructure
const repository = new GitRepository(at('infra.git'))
const program = terraformEngine === 'opentofu' ? 'tofu' : terraformEngine
const password = 'correct horse battery'
/** What the user's own terraform needs; Oarlock's workers get it from the environment of `oarlock up`. */
const engineEnv = {
  TF_CLI_CONFIG_FILE: infrastructure.cliConfig,
  TF_VAR_password: password,
  CHECKPOINT_DISABLE: '1',
  TF_IN_AUTOMATION: '1',
}
let oarlock: OarlockProcess
let stacks: StackFixture

after(async () => {
  await oarlock?.stop()
  removeDirectory(base)
})

/** Calls `work` for each item, for two at a time, in order. */
async function forEach<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items]
  const next = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item)
  }
  await Promise.all([next(), next()])
}

async function commit(stage: Stage): Promise<string> {
  for (const [name, text] of Object.entries(infrastructure.files(stage))) {
    mkdirSync(dirname(join(repository.path, name)), { recursive: true })
    writeFileSync(join(repository.path, name), text)
  }
  const hash = repository.commit({})
  execFileSync('git', ['-C', at('checkout'), 'pull', '--quiet'], { stdio: 'inherit' })
  return hash
}

/** Starts `oarlock up`, of this version or of another one. */
async function start(dataDir: string, program = launcher): Promise<void> {
  const flags = [
    '--data',
    dataDir,
    '--listen',
    '127.0.0.1:0',
    '--health-address',
    '127.0.0.1:0',
    '--max-workers',
    '3',
    '--allow-path',
    base,
  ]
  oarlock = await startUp(program, dataDir, flags, { TF_CLI_CONFIG_FILE: infrastructure.cliConfig })
  stacks = new StackFixture(oarlock.client)
}

/** A root module outside of its workspaces. */
const shared = (directory: string): Pick<Deployment, 'directory' | 'workspace'> => ({ directory })

/** The user's own terraform in the checkout. Returns the output. */
async function terraform(
  { directory, workspace }: Pick<Deployment, 'directory' | 'workspace'>,
  code: number,
  ...args: string[]
): Promise<string> {
  const env = { ...engineEnv, ...(workspace === undefined ? {} : { TF_WORKSPACE: workspace }) }
  const result = await runProgram(program, [`-chdir=${join(at('checkout'), directory)}`, ...args], { env })
  equal(result.code, code, `${directory}: ${program} ${args.join(' ')}: ${result.text}`)
  return result.stdout
}

const cli = async (...args: string[]) => await cliOf(launcher, ...args)

/** A command of this version of Oarlock, or of another one. */
async function cliOf(program: string, ...args: string[]): Promise<string> {
  const { code, text } = await runProgram(process.execPath, [program, ...args], { env: { KUBECONFIG: oarlock.kubeconfig, ...engineEnv } })
  equal(code, 0, `oarlock ${args.join(' ')}: ${text}`)
  return text
}

const specOf = ({ directory, variables, variablesFrom }: Deployment): StackSpec => ({
  engine: terraformEngine as StackSpec['engine'],
  source: { git: { url: repository.url, branch: 'main', directory }, interval: '2s' },
  ...(variables ? { variables } : {}),
  ...(variablesFrom?.length ? { variablesFrom } : {}),
  ...{ approval: 'Manual', drift: 'Report', suspend: true },
})

const isAwaiting = ({ status }: Stack) => isConditionTrue(status?.conditions, 'AwaitingApproval')

/** Waits until a Stack has been planned at a commit: it is Ready without changes, or its plan awaits approval. */
const untilPlanned = async (stack: string, commit: string): Promise<Stack> =>
  await stacks.until(
    stack,
    `Ready or a plan at ${commit}`,
    each => (isReady(each) && each.status?.applied?.revision === commit) || (isAwaiting(each) && each.status?.plan?.revision === commit),
    240_000,
  )

type Change = { address: string; change: { actions: string[]; after: { input?: { label?: string }; filename?: string } | null } }
/** Digests of all plans that a user has seen in full, and the resources that they create, by the name in the ledger. */
const shown = { digests: new Set<string>(), creates: [] as string[] }

/** Shows the waiting plan of a Stack, then approves it. Returns the plan as text. */
async function approve(stack: string): Promise<string> {
  const run = (await stacks.get(stack)).status?.plan?.runName ?? ''
  const text = await cli('plan', '--run', run)
  const { digest, plan } = JSON.parse(await cli('plan', '--run', run, '-o', 'json')) as {
    digest: string
    plan: { resource_changes: Change[] }
  }
  for (const { address, change } of plan.resource_changes)
    if (change.actions.includes('create')) {
      ok(text.includes(address), `${address} is not in the plan of ${stack}: ${text}`)
      shown.creates.push(change.after?.input?.label ?? change.after?.filename ?? address)
    }
  shown.digests.add(digest)
  await cli('approve', stack, '--plan', digest, '--yes', '--wait')
  return text
}

/** The resources that exist before Oarlock does. */
let existing: string[] = []
const createdSince = () => infrastructure.recorded('create').slice(existing.length)

/** As the guide describes it: the Stack is suspended, its state is imported, and then the Stack is resumed without the backend in its files. */
async function moveIn(moved: readonly Deployment[], program?: string): Promise<void> {
  const oarlockOf = async (...args: string[]) => (program === undefined ? await cli(...args) : await cliOf(program, ...args))
  for (const deployment of moved) await stacks.create(deployment.stack, specOf(deployment))
  for (const { stack, directory, workspace } of moved) {
    if (workspace) await terraform(shared(directory), 0, 'workspace', 'select', workspace)
    await oarlockOf('state', 'import', stack, '--from', join(at('checkout'), directory), '--yes')
  }
}

async function resume(moved: readonly Deployment[]): Promise<void> {
  for (const { stack } of moved) await stacks.patch(stack, { spec: { suspend: false } })
}

const inDev = deployments.filter(({ environment }) => environment === 'dev')
const inOthers = deployments.filter(({ environment }) => environment !== 'dev')

let failed: string | undefined
/** A test that continues where the one before ended. After a failure the others are not run. */
function step(name: string, run: (t: TestContext) => void | Promise<void>): void {
  test(name, { skip: skipWithoutTerraformEngine }, async t => {
    ok(failed === undefined, `not run, because this failed: ${failed}`)
    failed = name
    await run(t)
    failed = undefined
  })
}

step('a team has 36 states of 30 root modules', async () => {
  deepEqual([new Set(deployments.map(({ directory }) => directory)).size, deployments.length], [30, 36])
  execFileSync('git', ['clone', '--quiet', repository.url, at('checkout')])
  await commit({ hasBackend: true, isChanged: false })
  for (const deployment of deployments) {
    await terraform(shared(deployment.directory), 0, 'init', '-input=false')
    if (deployment.workspace) await terraform(shared(deployment.directory), 0, 'workspace', 'new', deployment.workspace)
    await terraform(deployment, 0, 'apply', '-input=false', '-auto-approve')
  }
  existing = infrastructure.recorded('create')
  equal(new Set(existing).size, existing.length)
})

step('their states are imported, one environment with an earlier version of Oarlock that is upgraded then', async t => {
  const missing = skipWithoutCommit(earlierCommit)
  if (missing) t.diagnostic(`${missing}: all environments are moved in with this version`)
  const earlier = missing ? undefined : checkOutVersion(earlierCommit, at('earlier'))
  await start(at('first'), earlier)
  await oarlock.client.resource(secretResource).create({ metadata: { name: 'password', namespace: 'default' }, stringData: { password } })
  await moveIn(inDev, earlier)
  equal(await oarlock.stop(), 0)

  await start(at('first'))
  await moveIn(inOthers)
  const revision = await commit({ hasBackend: false, isChanged: false })
  await resume(deployments)
  for (const { stack } of deployments) ok(isReady(await untilPlanned(stack, revision)), `the plan of ${stack} has changes after the move`)
  deepEqual([createdSince(), infrastructure.recorded('destroy')], [[], []])
})

step('a change is planned, shown, approved and applied, with moved and imported resources', async () => {
  const revision = await commit({ hasBackend: false, isChanged: true })
  const plans = new Map<string, string>()
  // A Stack is planned once those whose outputs it uses are Ready.
  for (const { stack } of deployments) if (isAwaiting(await untilPlanned(stack, revision))) plans.set(stack, await approve(stack))
  for (const { stack } of deployments) ok(isReady(await untilPlanned(stack, revision)), stack)
  match(plans.get('dev-cache') ?? '', /terraform_data\.node has moved to terraform_data\.primary/)
  match(plans.get('prod-queue') ?? '', /terraform_data\.legacy will be imported/)
  match(plans.get('staging-iam') ?? '', /~ role += "reader" -> "admin"[\s\S]*terraform_data\.user\["eve"\] will be destroyed/)
  deepEqual(
    createdSince().toSorted(),
    [
      ...environments.map(environment => `${environment}/network/subnet-c`),
      infrastructure.object('prod', 'compute', 'instance-2'),
    ].toSorted(),
  )
  deepEqual(infrastructure.recorded('destroy').toSorted(), ['dev/iam/eve', 'prod/iam/eve', 'staging/iam/eve'])
})

step('drift is reported, shown and corrected after approval', async () => {
  const lost = infrastructure.object('staging', 'compute', 'instance-1')
  const changed = infrastructure.object('prod', 'cdn', 'shop/page-0')
  rmSync(lost)
  writeFileSync(changed, 'changed by hand')
  const drifted = ['staging-compute', 'prod-cdn']
  for (const stack of drifted) await stacks.patch(stack, { spec: { interval: '3s' } })
  for (const stack of drifted) await stacks.until(stack, 'Drifted', stack => condition(stack, 'Drifted')?.status === 'True')
  for (const stack of drifted) await stacks.patch(stack, { spec: { interval: null } })
  deepEqual(
    createdSince().filter(name => name === lost || name === changed),
    [],
  )
  for (const stack of drifted) {
    await cli('run', stack)
    await stacks.until(stack, 'a plan that corrects it', isAwaiting)
    await approve(stack)
    await stacks.until(stack, 'Ready without drift', each => isReady(each) && condition(each, 'Drifted')?.status !== 'True')
  }
  deepEqual(
    createdSince()
      .filter(name => name === lost || name === changed)
      .toSorted(),
    [lost, changed].toSorted(),
  )
})

step('a backup is restored to another data directory, where each Stack is reviewed before it continues', async () => {
  writeFileSync(at('passphrase'), 'five random words of mine\n', { mode: 0o600 })
  const passphrase = ['--passphrase-file', at('passphrase')]
  const count = createdSince().length
  match(
    await cli('backup', '--data', at('first'), '--to', at('my.backup'), '--include-logs', '--include-keys', ...passphrase),
    /states: \d+ versions of 36 Stacks/,
  )
  await cli('backup', 'verify', at('my.backup'), ...passphrase)
  await oarlock.stop()
  removeDirectory(at('first'))
  await cli('restore', at('my.backup'), '--data', at('second'), ...passphrase)
  await start(at('second'))
  for (const { stack } of deployments)
    await stacks.until(stack, 'RestoredFromBackup', each => condition(each, 'Stalled')?.reason === 'RestoredFromBackup')
  await forEach(deployments, async ({ stack }) => {
    match(await cli('plan', stack), /no changes/)
  })
  await cli('restore', 'accept', '--all', '--yes')
  for (const { stack } of deployments) await stacks.until(stack, 'Ready', isReady, 120_000)
  equal(createdSince().length, count)
})

step('every Run that applied an approved plan applied one that was shown', async () => {
  const runs = (await Promise.all(deployments.map(({ stack }) => stacks.runsOf(stack)))).flat()
  const approved = runs.flatMap(({ spec }) => (spec.approvedPlan ? [spec.approvedPlan.digest] : []))
  ok(approved.length > 0)
  deepEqual(
    approved.filter(digest => !shown.digests.has(digest)),
    [],
  )
})

step('the states are moved out, and terraform finds no change', async () => {
  const [creates, destroys] = [createdSince().length, infrastructure.recorded('destroy').length]
  for (const { stack } of deployments) await stacks.patch(stack, { spec: { suspend: true } })
  for (const { stack } of deployments)
    await stacks.until(stack, 'suspended', each => each.status?.observedGeneration === each.metadata.generation)
  await commit({ hasBackend: true, isChanged: true })
  for (const deployment of deployments) {
    const file = at(`${deployment.stack}.tfstate`)
    await cli('state', 'pull', deployment.stack, '--to', file)
    await terraform(deployment, 0, 'init', '-input=false', '-reconfigure')
    await terraform(deployment, 0, 'state', 'push', file)
    await terraform(deployment, 0, 'plan', '-input=false', '-detailed-exitcode')
  }
  for (const { stack } of deployments) {
    await stacks.patch(stack, { spec: { suspend: false, deletion: 'Orphan' } })
    await cli('delete', `stack/${stack}`)
  }
  deepEqual((await stacks.stacks.listAll({ namespace: 'default' })).items, [])
  deepEqual([createdSince().length, infrastructure.recorded('destroy').length], [creates, destroys])
})

step('nothing was created that was not shown before its approval, and nothing twice', () => {
  const created = createdSince()
  deepEqual(created.toSorted(), shown.creates.toSorted())
  // Only the two drifted objects, which were lost in between.
  const twice = infrastructure.recorded('create').filter((name, index, all) => all.indexOf(name) !== index)
  deepEqual(
    twice.toSorted(),
    [infrastructure.object('prod', 'cdn', 'shop/page-0'), infrastructure.object('staging', 'compute', 'instance-1')].toSorted(),
  )
})
