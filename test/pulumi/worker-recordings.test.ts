/**
 * Stacks of engine pulumi, executed by workers whose CLI is a stand-in (`recorded-cli.ts`): it sends what the real CLI has sent to a Run's endpoint, and fails unless
 * arguments, configuration, plan, state and answers are the recorded ones. `record-runs.ts` records it.
 */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Run, StackSpec } from '../../src/api/index.ts'
import { deploymentOf } from '../../src/execution/engine/pulumi/results.ts'
import { isJournalTested } from '../../src/execution/pulumi-backend/index.ts'
import { privateNetworkProblem, probeIsolation } from '../../src/execution/workspace/index.ts'
import { secretResource } from '../../src/kubernetes/client/index.ts'
import { eventually } from '../support/eventually.ts'
import { stackUidOf } from '../support/worker-fixture.ts'
import { createWorkerHarness } from '../support/worker-harness.ts'
import { type CommandControl, decodeCommands } from './command-recording.ts'
import { type StateSummary, summarize } from './expected-state.ts'
import { installRecordedCli } from './install-recorded-cli.ts'
import { password, runScenarios, secondBegins } from './run-scenarios.ts'

const directory = join(import.meta.dirname, 'recordings', 'runs')
const recordingOf = (scenario: string) => join(directory, `${scenario}.jsonl.zst`)

const harness = createWorkerHarness()
const { execute, startWorker, assignRun, getRun, readLog, newPath } = harness
const sandbox = await probeIsolation('Sandbox')
const networkProblem = sandbox.available ? privateNetworkProblem(sandbox.sandbox?.slirp4netns) : sandbox.reason

/** Workers of this test have the recorded commands of a scenario in place of the CLI. */
async function useRecordedCli(t: TestContext, scenario: string, controls: readonly CommandControl[] = []): Promise<void> {
  const path = await installRecordedCli(mkdtempSync(join(harness.directory, 'cli-')), recordingOf(scenario), controls)
  const secrets = harness.client.resource(secretResource)
  await secrets.apply({ metadata: { name: 'credentials', namespace: 'apps' }, stringData: { password } }, { force: true })
  const before = process.env.PULUMI_BIN
  process.env.PULUMI_BIN = path
  t.after(() => {
    if (before === undefined) delete process.env.PULUMI_BIN
    else process.env.PULUMI_BIN = before
  })
}

const program = readFileSync(join(import.meta.dirname, 'programs', 'run', 'Pulumi.yaml'), 'utf8')
const stackOf = (length: number, more: Partial<StackSpec> = {}): Partial<StackSpec> => ({
  engine: 'pulumi',
  source: { inline: { files: { 'Pulumi.yaml': program } } },
  variables: { length },
  variablesFrom: [{ secretRef: { name: 'credentials' } }],
  ...more,
  pulumi: { stack: 'dev', ...more.pulumi },
})

const planOf = ({ status }: Run) => {
  const { add, change, destroy } = status?.plan ?? {}
  return [add, change, destroy]
}
const succeeded = (run: Run): Run => {
  equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
  return run
}
const stateOf = async (run: Run): Promise<StateSummary> => {
  const found = await harness.fixture.states.readVersion({ stackUid: stackUidOf(run), kind: 'pulumi' })
  return summarize(deploymentOf(found?.bytes))
}
const lockOf = async (run: Run) => await harness.fixture.states.currentLock(stackUidOf(run))

test('the recordings name a tested version of the CLI and its digest, and the CLI has read no secret from a file or an argument', () => {
  deepEqual(
    readdirSync(directory).sort(),
    Object.keys(runScenarios)
      .map(name => `${name}.jsonl.zst`)
      .sort(),
  )
  for (const scenario of Object.keys(runScenarios)) {
    const { header, commands } = decodeCommands(readFileSync(recordingOf(scenario)))
    equal(header.scenario, scenario)
    ok(isJournalTested(header.cliVersion), header.cliVersion)
    ok(commands.length > 1)
    for (const { args, config, plan, savedPlan } of commands)
      ok(![...args, config, plan, savedPlan].some(text => text?.includes(password)), `${scenario}: ${args[0]}`)
  }
})

/** Plan, update, change, refresh and destruction of one Stack. */
async function executeLifecycle(t: TestContext, stackName: string, more: Partial<StackSpec> = {}): Promise<Run[]> {
  let epoch = 0
  const next = async (length: number, type: 'Plan' | 'Apply' | 'Refresh' | 'Destroy'): Promise<Run> =>
    succeeded((await execute(t, { stackName, epoch: ++epoch, type, stack: stackOf(length, more) })).run)
  const planned = await next(4, 'Plan')
  deepEqual(planOf(planned), [3, 0, 0])
  equal(await harness.fixture.states.newestVersion(stackUidOf(planned)), 0, 'a Plan wrote a state')

  const created = await next(4, 'Apply')
  deepEqual([planOf(created), created.status?.changed, created.status?.resources], [[3, 0, 0], true, 3])
  equal(created.status?.outputs?.length, 4)
  equal(created.status?.outputs?.echo, undefined, 'a secret is an output in clear text')
  match(String(created.status?.outputs?.first), /^.{8}$/)

  const same = await next(4, 'Apply')
  deepEqual([planOf(same), same.status?.changed, same.status?.outputs], [[0, 0, 0], false, created.status?.outputs])
  const changed = await next(5, 'Apply')
  deepEqual([planOf(changed), changed.status?.changed, changed.status?.outputs?.length], [[1, 0, 1], true, 5])
  equal(changed.status?.outputs?.first, created.status?.outputs?.first)
  const refreshed = await next(5, 'Refresh')
  equal(refreshed.status?.resources, 3)
  const destroyed = await next(5, 'Destroy')
  deepEqual([planOf(destroyed), destroyed.status?.resources], [[0, 0, 3], 0])
  deepEqual(await stateOf(destroyed), { resources: [], pending: [] })
  const runs = [planned, created, same, changed, refreshed, destroyed]
  for (const run of runs) {
    equal(await lockOf(run), undefined)
    const log = await readLog(run)
    ok(![log, JSON.stringify(run)].some(text => text.includes(password)), `${run.spec.type}: ${log}`)
  }
  return runs
}

test('a Stack is planned, created, left as it is, changed, refreshed and destroyed, with a secret in its configuration and its outputs', async t => {
  await useRecordedCli(t, 'lifecycle')
  const [planned, created] = await executeLifecycle(t, 'lifecycle')
  match(await readLog(planned!), /\+ testprovider:index:Random second: create/)
  match(await readLog(created!), /testprovider:index:Random/)
  const diff = await harness.fixture.states.getDiff(stackUidOf(planned!), planned!.metadata.name)
  match(diff?.toString() ?? '', /testprovider:index:Echo/)
  ok(!diff?.includes(password))
})

test('in a sandbox with a network of its own, the CLI reaches its state through the relay', { skip: networkProblem ?? false }, async t => {
  await useRecordedCli(t, 'lifecycle')
  const runs = await executeLifecycle(t, 'sandboxed', { isolation: { level: 'Sandbox', network: 'None' } })
  for (const { status } of runs) deepEqual([status?.isolation?.level, status?.isolation?.network], ['Sandbox', 'None'])
})

test('a command that was not recorded, or another answer, fails the Run', async t => {
  await useRecordedCli(t, 'lifecycle')
  const { run } = await execute(t, { stackName: 'other', stack: stackOf(9) })
  deepEqual([run.status?.phase, run.status?.reason], ['Failed', 'PlanFailed'])
  match(run.status?.message ?? '', /no recorded command begins like .*another configuration/)
})

test('the CLI is killed while it creates a resource: the Run lists it, no lock remains, the next Run stops, and with Clear the others are not created again', async t => {
  await useRecordedCli(t, 'killed')
  const stackName = 'killed'
  const second = 'urn:pulumi:dev::web::testprovider:index:Random::second'
  const killed = (await execute(t, { stackName, epoch: 1, stack: stackOf(4) })).run
  deepEqual([killed.status?.phase, killed.status?.reason], ['Failed', 'ApplyFailed'], JSON.stringify(killed.status))
  equal(await lockOf(killed), undefined)
  const left = await stateOf(killed)
  deepEqual(left.pending, [`creating ${second}`])
  const first = left.resources.filter(each => each.includes('Random::first'))
  equal(first.length, 1)

  const stopped = (await execute(t, { stackName, epoch: 2, stack: stackOf(4) })).run
  deepEqual([stopped.status?.phase, stopped.status?.reason, stopped.status?.retryable], ['Failed', 'PendingCreates', false])
  match(stopped.status?.message ?? '', /testprovider:index:Random second/)
  deepEqual(await stateOf(stopped), left)

  const cleared = succeeded((await execute(t, { stackName, epoch: 3, stack: stackOf(4, { pulumi: { pendingCreates: 'Clear' } }) })).run)
  deepEqual([planOf(cleared), cleared.status?.resources], [[2, 0, 0], 3])
  const recovered = await stateOf(cleared)
  deepEqual([recovered.pending, recovered.resources.filter(each => each.includes('Random::first'))], [[], first])
  equal(await lockOf(cleared), undefined)
})

test('another Run takes the lock: the CLI stops with the next answer, and what it had created is kept as an orphan', async t => {
  const [reached, proceed] = [newPath(), newPath()]
  await useRecordedCli(t, 'fenced', [{ command: 'up', body: secondBegins, action: 'wait', reached, proceed }])
  const { states } = harness.fixture
  const worker = startWorker(t)
  const assigned = await assignRun(worker.name, { stackName: 'fenced', epoch: 1, stack: stackOf(4) })
  await eventually(
    async () => existsSync(reached) || (await getRun(assigned)).status?.finishedAt !== undefined,
    'the update to begin the second resource',
    60_000,
  )
  ok(existsSync(reached), JSON.stringify((await getRun(assigned)).status))
  const stackUid = stackUidOf(assigned)
  const next = { kind: 'Run', runName: 'fenced-2', epoch: 2 } as const
  equal((await states.lock({ stackUid, holder: next }, async () => true)).kind, 'granted')
  const before = await stateOf(assigned)
  writeFileSync(proceed, '')
  // What becomes of the Run is decided by those who gave the lock to another one.
  equal(await worker.done, 3, worker.logLines.join('\n'))
  match(worker.logLines.join('\n'), /"reason":"Fenced"/)
  deepEqual((await states.currentLock(stackUid))?.holder, next)
  deepEqual(await stateOf(assigned), before)
  deepEqual(
    (await states.orphans(stackUid)).map(({ kind, reason, epoch }) => ({ kind, reason, epoch })),
    [{ kind: 'pulumi-journal', reason: 'StaleEpoch', epoch: 1 }],
  )
})
