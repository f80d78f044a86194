/**
 * The lifecycle of Stacks in one `oarlock up`, from the first Run to deletion, with real engines. Restarts are in `restart.slow.test.ts`.
 * More than 400 lines, because all tests share one process and run concurrently in it.
 */
import { deepEqual, equal, match, notEqual, ok, rejects } from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { annotations, isEnded, type Run, type Stack, type StackSpec } from '../src/api/index.ts'
import { configMapResource, eventResource, secretResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { GitRepository } from './support/git-repository.ts'
import { countDone, readLedger, record } from './support/ledger.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { processesOfRun } from './support/processes.ts'
import { runOarlock, runProgram, skipWithout, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, isReady, isUpToDate, StackFixture } from './support/stacks.ts'

const inline = (files: Record<string, string>) => ({ inline: { files } })
const shell = (apply: string, more: Partial<StackSpec> = {}): StackSpec => ({
  engine: 'command',
  source: inline({ 'README.md': 'commands' }),
  command: { apply: ['sh', '-c', apply] },
  ...more,
})
const terraform = (main: string, more: Partial<StackSpec> = {}): StackSpec => ({
  engine: terraformEngine,
  source: inline({ 'main.tf': main }),
  ...more,
})
const hasPhase = (phase: string) => (run: Run) => run.status?.phase === phase

describe('the lifecycle of a Stack', { concurrency: 5 }, () => {
  const dataDir = makeDataDir()
  const work = join(dataDir, 'work')
  const at = (name: string) => join(work, name)
  let oarlock: OarlockProcess
  let stacks: StackFixture
  let httpUrl: string

  before(async () => {
    mkdirSync(work)
    oarlock = await startOarlock(dataDir, ['--max-workers', '6', '--allow-path', work])
    stacks = new StackFixture(oarlock.client)
    httpUrl = oarlock.httpUrl
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })

  const lockOf = async (name: string) => await (await oarlock.client.request({ method: 'GET', path: `/state/default/${name}/lock` })).json()
  const configMap = async (name: string) => await oarlock.client.resource(configMapResource).getOrUndefined(name, { namespace: 'default' })
  /** Changes a ConfigMap as a user with kubectl does. */
  const patchConfigMap = async (name: string, data: object) =>
    await oarlock.client
      .resource(configMapResource)
      .patch(name, { data }, { type: 'merge', namespace: 'default', fieldManager: 'kubectl-edit' })

  test('cancel interrupts the engine and keeps its state, and the next Run continues', { skip: skipWithoutTerraformEngine }, async () => {
    const ledger = at('cancel')
    const step = (name: string, after: string, script: string) => `
      resource "terraform_data" "${name}" {
        ${after && `depends_on = [terraform_data.${after}]`}
        provisioner "local-exec" { command = "${record(ledger, 'begin', name)}; ${script}; ${record(ledger, 'done', name)}" }
      }`
    const main = step('first', '', 'true') + step('second', 'first', `test -e ${at('continue')} || sleep 100`)
    await stacks.create('cancel', terraform(main))
    await eventually(() => readLedger(ledger).some(line => line.what === 'begin' && line.item === 'second'), 'the second resource', 40_000)
    const run = await stacks.untilRun('cancel', 'Applying', hasPhase('Applying'))
    await stacks.runs.patch(run.metadata.name, { spec: { cancel: true } }, { type: 'merge', namespace: 'default' })

    const ended = await stacks.untilRun('cancel', 'its end', isEnded)
    deepEqual([ended.status?.phase, ended.status?.reason], ['Canceled', 'Canceled'])
    deepEqual(processesOfRun(run.metadata.uid), [])
    deepEqual(await lockOf('cancel'), {})
    const stalled = await stacks.until('cancel', 'Stalled', stack => isConditionTrue(stack.status?.conditions, 'Stalled'))
    equal(condition(stalled, 'Ready')?.reason, 'RunCanceled')
    match(condition(stalled, 'Ready')?.message ?? '', /was canceled; .*oarlock run cancel/)
    equal((await stacks.runsOf('cancel')).length, 1, 'nothing is retried')

    writeFileSync(at('continue'), '')
    await stacks.patch('cancel', { metadata: { annotations: { [annotations.requestedRun]: 'apply:again' } } })
    const stack = await stacks.untilReady('cancel')
    equal(stack.status?.resources, 2)
    deepEqual(countDone(readLedger(ledger)), { first: 1, second: 1 })
  })

  test('rejects an outdated approval and applies exactly the approved plan', { skip: skipWithoutTerraformEngine }, async () => {
    const ledger = at('approval')
    const main = (version: number) =>
      `resource "terraform_data" "a" {
        input = ${version}
        provisioner "local-exec" { command = "${record(ledger, 'done', `v${version}`)}" }
        triggers_replace = ${version}
      }`
    await stacks.create('approval', terraform(main(1), { approval: 'Manual' }))
    const awaitPlan = (old?: string) =>
      stacks.until(
        'approval',
        'a plan that awaits approval',
        stack =>
          isUpToDate(stack) &&
          isConditionTrue(stack.status?.conditions, 'AwaitingApproval') &&
          stack.status?.plan !== undefined &&
          stack.status.plan.digest !== old,
      )
    const approve = (digest: string | undefined) =>
      stacks.patch('approval', { metadata: { annotations: { [annotations.approvedPlan]: digest } } })
    const first = (await awaitPlan()).status?.plan
    deepEqual([first?.add, first?.change, first?.destroy], [1, 0, 0])
    await stacks.patch('approval', { spec: { source: inline({ 'main.tf': main(2) }) } })
    const second = (await awaitPlan(first?.digest)).status?.plan
    await rejects(approve(first?.digest), /plan "sha256:\w+" does not await approval: plan "sha256:\w+" of Run .* does/)
    const cli = await runOarlock(['approve', 'approval', '--plan', first?.digest ?? '', '--yes'], {
      env: { KUBECONFIG: oarlock.kubeconfig },
    })
    equal(cli.code, 4, cli.text)
    match(cli.stderr, /is not the plan that awaits approval, sha256:/)
    deepEqual(readLedger(ledger), [], 'nothing was applied')
    equal((await stacks.get('approval')).status?.plan?.digest, second?.digest)

    await approve(second?.digest)
    await stacks.untilReady('approval')
    const apply = (await stacks.runsOf('approval')).findLast(({ spec }) => spec.type === 'Apply')
    const { digest, runName, user } = apply?.spec.approvedPlan ?? {}
    deepEqual({ digest, runName, user }, { digest: second?.digest, runName: second?.runName, user: 'oarlock:admin' })
    equal(apply?.status?.plan?.digest, second?.digest)
    deepEqual(countDone(readLedger(ledger)), { v2: 1 })
  })

  test('does not apply a plan of an outdated state, and plans again', { skip: skipWithoutTerraformEngine }, async () => {
    const main = 'resource "terraform_data" "a" {}\nresource "terraform_data" "b" {}'
    await stacks.create('outdated', terraform('resource "terraform_data" "a" {}'))
    await stacks.untilReady('outdated')
    await stacks.patch('outdated', { spec: { approval: 'Manual', source: inline({ 'main.tf': main }) } })
    const awaitPlan = () => stacks.until('outdated', 'a plan', stack => isUpToDate(stack) && stack.status?.plan !== undefined)
    const old = (await awaitPlan()).status?.plan
    // A user changes the same state with the engine itself.
    const state = JSON.parse(await (await oarlock.client.request({ method: 'GET', path: '/state/default/outdated' })).text())
    const changed = { ...state, serial: state.serial + 1, resources: [] }
    await oarlock.client.request({ method: 'POST', path: '/state/default/outdated', body: changed })
    await stacks.patch('outdated', { metadata: { annotations: { [annotations.approvedPlan]: old?.digest } } })
    const run = await stacks.untilRun(
      'outdated',
      'a rejection',
      ({ spec, status }) => spec.approvedPlan !== undefined && status?.phase === 'Failed',
    )
    equal(run.status?.reason, 'PlanOutdated')
    const next = await stacks.until(
      'outdated',
      'a new plan',
      stack => stack.status?.plan !== undefined && stack.status.plan.digest !== old?.digest,
    )
    equal(next.status?.plan?.add, 2)
    await stacks.patch('outdated', { metadata: { annotations: { [annotations.approvedPlan]: next.status?.plan?.digest } } })
    equal((await stacks.untilReady('outdated')).status?.resources, 2)
  })

  test('deletion destroys the dependents first', { skip: skipWithoutTerraformEngine }, async () => {
    const ledger = at('destroy')
    const step = (what: string, name: string) => [
      'sh',
      '-c',
      `${record(ledger, 'begin', `${what}-${name}`)}; sleep 0.3; ${record(ledger, 'done', `${what}-${name}`)}`,
    ]
    const base = `
      resource "terraform_data" "a" {
        input = { ledger = "${ledger}" }
        provisioner "local-exec" {
          when    = destroy
          command = "echo done destroy-base $OARLOCK_RUN_UID $(date +%s%3N) >> \${self.output.ledger}"
        }
      }
      output "id" { value = terraform_data.a.id }`
    await stacks.create('base', terraform(base))
    await stacks.create(
      'middle',
      shell('', { command: { apply: step('apply', 'middle'), destroy: step('destroy', 'middle') }, dependsOn: [{ name: 'base' }] }),
    )
    await stacks.create(
      'top',
      shell('', {
        command: { apply: step('apply', 'top'), destroy: step('destroy', 'top') },
        variablesFrom: [{ stackRef: { name: 'middle' } }],
      }),
    )
    await stacks.untilReady('top')
    for (const name of ['base', 'middle', 'top']) await stacks.stacks.delete(name, { namespace: 'default' })
    const base2 = await stacks.until('base', 'DependentsExist', stack => condition(stack, 'Ready')?.reason === 'DependentsExist')
    match(condition(base2, 'Ready')?.message ?? '', /until the dependent Stacks are deleted: middle/)
    for (const name of ['top', 'middle', 'base']) await stacks.untilDeleted(name)
    const order = readLedger(ledger).map(({ what, item }) => `${what} ${item}`)
    deepEqual(
      order.filter(line => line.includes('destroy')),
      ['begin destroy-top', 'done destroy-top', 'begin destroy-middle', 'done destroy-middle', 'done destroy-base'],
    )
    equal(await oarlock.client.resource(secretResource).getOrUndefined('base-outputs', { namespace: 'default' }), undefined)
    await eventually(async () => (await stacks.runsOf('base')).length === 0, 'the deletion of the Runs of base')
  })

  test('deletion with Orphan keeps the resources', async () => {
    const files = { 'map.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: orphaned }\ndata: { a: b }\n' }
    await stacks.create('orphan', { engine: 'manifests', source: inline(files), deletion: 'Orphan' })
    await stacks.untilReady('orphan')
    await stacks.stacks.delete('orphan', { namespace: 'default' })
    await stacks.untilDeleted('orphan')
    equal((await configMap('orphaned'))?.data?.a, 'b')
    const events = (await oarlock.client.resource(eventResource).listAll({ namespace: 'default' })).items
    deepEqual(
      events.filter(({ message }) => /orphan.*Destroy/.test(message ?? '')),
      [],
    )
  })

  test('drift Report reports drift without a change, Correct corrects it', async () => {
    const files = { 'map.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: { name: drifting }\ndata: { size: "1" }\n' }
    await stacks.create('drift', { engine: 'manifests', source: inline(files), drift: 'Report', interval: '1s' })
    await stacks.untilReady('drift')
    await patchConfigMap('drifting', { size: '2' })
    const drifted = await stacks.until('drift', 'Drifted', stack => isConditionTrue(stack.status?.conditions, 'Drifted'))
    equal((await configMap('drifting'))?.data?.size, '2', 'Report changed something')
    equal(condition(drifted, 'Ready')?.reason, 'Drifted', 'a Stack with drift is not Ready')
    await patchConfigMap('drifting', { size: '1' })
    await stacks.until('drift', 'not Drifted', stack => !isConditionTrue(stack.status?.conditions, 'Drifted'))
    await stacks.patch('drift', { spec: { drift: 'Correct' } })
    await stacks.untilReady('drift')
    await patchConfigMap('drifting', { size: '3' })
    await eventually(async () => (await configMap('drifting'))?.data?.size === '1', 'the ConfigMap to be corrected', 30_000)
    await stacks.patch('drift', { spec: { drift: 'Off' } })
  })

  test('a command engine detects drift with its plan command', async () => {
    const file = at('made-by-command')
    await stacks.create('drift-command', {
      ...shell(''),
      command: { plan: ['sh', '-c', `test -e ${file} || exit 2`], apply: ['touch', file], destroy: ['rm', '-f', file] },
      interval: '1s',
    })
    await stacks.untilReady('drift-command')
    rmSync(file)
    await eventually(() => existsSync(file), 'the file to be back', 30_000)
    await stacks.patch('drift-command', { spec: { drift: 'Off' } })
    await stacks.stacks.delete('drift-command', { namespace: 'default' })
    await stacks.untilDeleted('drift-command')
    equal(existsSync(file), false)
  })

  test('a new commit starts a Run', { skip: skipWithout('git') }, async () => {
    const repository = new GitRepository(at('repository'))
    const first = repository.commit({ 'out.json': '{"version": "1"}' })
    const command = { apply: ['sh', '-c', 'cp out.json "$OARLOCK_OUTPUTS"'] }
    await stacks.create('from-git', {
      engine: 'command',
      source: { git: { url: repository.url, branch: 'main' }, interval: '1s' },
      command,
    })
    const before = await stacks.untilReady('from-git')
    deepEqual([before.status?.applied?.revision, before.status?.outputs], [first, { version: '1' }])
    const second = repository.commit({ 'out.json': '{"version": "2"}' })
    const updated = await stacks.until(
      'from-git',
      'the second commit',
      stack => isReady(stack) && stack.status?.applied?.revision === second,
    )
    deepEqual(updated.status?.outputs, { version: '2' })
    deepEqual(
      (await stacks.runsOf('from-git')).map(({ spec }) => [spec.reason, spec.revision]),
      [
        ['NewGeneration', first],
        ['SourceChanged', second],
      ],
    )
    await stacks.patch('from-git', { spec: { suspend: true } })
  })

  test('changed outputs start a Run of the dependent Stack', async () => {
    const outputs = (value: string) => shell(`echo '{"port": "${value}"}' > "$OARLOCK_OUTPUTS"`)
    await stacks.create('upstream', outputs('80'))
    await stacks.create(
      'downstream',
      shell(`echo "{\\"url\\": \\"http://x:$OARLOCK_VAR_p\\"}" > "$OARLOCK_OUTPUTS"`, {
        variablesFrom: [{ stackRef: { name: 'upstream', outputs: { port: 'p' } } }],
      }),
    )
    equal((await stacks.untilReady('downstream')).status?.outputs?.url, 'http://x:80')
    await stacks.patch('upstream', { spec: { command: outputs('8080').command } })
    await stacks.until('downstream', 'the new port', stack => isReady(stack) && stack.status?.outputs?.url === 'http://x:8080')
    equal((await stacks.runsOf('downstream')).length, 2, 'once for each value')
  })

  test('suspend prevents new Runs until the Stack is resumed', async () => {
    await stacks.create('pausing', shell('echo one'))
    await stacks.untilReady('pausing')
    await stacks.patch('pausing', { spec: { suspend: true, command: { apply: ['echo', 'two'] } } })
    const suspended = await stacks.until(
      'pausing',
      'Suspended',
      stack => isUpToDate(stack) && condition(stack, 'Ready')?.reason === 'Suspended',
    )
    match(condition(suspended, 'Ready')?.message ?? '', /set spec\.suspend to false/)
    equal(suspended.status?.lastRunNumber, 1)
    await stacks.patch('pausing', { spec: { suspend: false } })
    await stacks.untilReady('pausing')
    deepEqual(
      (await stacks.runsOf('pausing')).map(({ spec }) => spec.stackRef.generation),
      [1, 3],
      'no Run of the suspended generation',
    )
  })

  test('a Run that exceeds its timeout is interrupted and fails', async () => {
    await stacks.create('late', shell('sleep 100 & sleep 100', { timeout: '1s', retry: { limit: 0 } }))
    const run = await stacks.untilRun('late', 'its end', isEnded)
    deepEqual([run.status?.phase, run.status?.reason], ['Failed', 'Timeout'])
    match(run.status?.message ?? '', /did not finish within 1s \(spec\.timeout\)/)
    deepEqual(processesOfRun(run.metadata.uid), [])
    const stack = await stacks.until('late', 'Stalled', stack => isConditionTrue(stack.status?.conditions, 'Stalled'))
    equal(condition(stack, 'Ready')?.reason, 'RetriesExhausted')
  })

  test('a failed Run is retried with a doubling delay up to the limit', async () => {
    const ledger = at('retry')
    await stacks.create(
      'retry',
      shell(`${record(ledger, 'begin', '$OARLOCK_EPOCH')}; exit 3`, { retry: { limit: 2, initial: '1s', max: '10s' } }),
    )
    const stack = await stacks.until('retry', 'Stalled', stack => isConditionTrue(stack.status?.conditions, 'Stalled'))
    match(condition(stack, 'Ready')?.message ?? '', /exit code 3.*All 2 retries failed/)
    const [first = 0, second = 0, third = 0, ...more] = readLedger(ledger).map(({ atMs }) => atMs)
    deepEqual(more, [])
    // Times in a status are whole seconds, so a delay may be up to one second shorter.
    ok(second - first >= 50 && third - second >= 1_000, `delays of ${second - first} and ${third - second} ms, expected about 1 and 2 s`)
  })

  test('state: External uses the backend of the source files', { skip: skipWithoutTerraformEngine }, async () => {
    const state = at('external.tfstate')
    const main = `terraform {\n  backend "local" { path = "${state}" }\n}\nresource "terraform_data" "a" {}`
    await stacks.create('external', terraform(main, { state: 'External' }))
    await stacks.untilReady('external')
    equal(JSON.parse(readFileSync(state, 'utf8')).resources.length, 1)
    const { versions } = (await (await oarlock.client.request({ method: 'GET', path: '/state/default/external/versions' })).json()) as {
      versions: { kind?: string }[]
    }
    deepEqual(versions, [])
  })

  test('a backend in the files is rejected before a plan, and its state is imported so that nothing is created twice', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const directory = at('imported')
    mkdirSync(directory)
    const resource = 'resource "terraform_data" "a" { input = "here" }'
    writeFileSync(join(directory, 'main.tf'), `terraform {\n  backend "local" { path = "mine.tfstate" }\n}\n${resource}`)
    const engine = async (...args: string[]) => {
      const { code, text } = await runProgram(terraformEngine === 'opentofu' ? 'tofu' : 'terraform', args, { cwd: directory })
      equal(code, 0, text)
    }
    const cli = (...args: string[]) => runOarlock(['state', ...args], { env: { KUBECONFIG: oarlock.kubeconfig } })
    const source = () => inline({ 'main.tf': readFileSync(join(directory, 'main.tf'), 'utf8') })

    await stacks.create('imported', { engine: terraformEngine, source: source() })
    const stalled = await stacks.until('imported', 'Stalled', stack => isConditionTrue(stack.status?.conditions, 'Stalled'))
    deepEqual([condition(stalled, 'Stalled')?.reason, condition(stalled, 'Ready')?.reason], ['BackendInFiles', 'BackendInFiles'])
    match(
      condition(stalled, 'Ready')?.message ?? '',
      /main\.tf:2 configures backend "local".*"state: External".*"oarlock state import imported/,
    )
    const runs = await stacks.runsOf('imported')
    deepEqual(
      runs.map(({ status }) => [status?.phase, status?.reason, status?.plan]),
      [['Failed', 'BackendInFiles', undefined]],
    )

    const early = await cli('import', 'imported', '--from', directory, '--yes')
    deepEqual([early.code, /"\S+ state pull" failed in .*init/s.test(early.text)], [1, true], early.text)
    await engine('init', '-input=false', '-no-color')
    const empty = await cli('import', 'imported', '--from', directory, '--yes')
    deepEqual([empty.code, /there is no state/.test(empty.text)], [4, true], empty.text)
    await engine('apply', '-input=false', '-no-color', '-auto-approve')
    const imported = await cli('import', 'imported', '--from', directory, '--yes')
    equal(imported.code, 0, imported.text)
    match(imported.text, /terraform_data\.a\n.*imported 1 resource from .*version 1\n/s)
    const versions = JSON.parse((await cli('versions', 'imported', '-o', 'json')).stdout) as { versions: { author: string }[] }
    deepEqual(
      versions.versions.map(({ author }) => author),
      ['user:oarlock:admin'],
    )
    const again = await cli('import', 'imported', '--from', join(directory, 'mine.tfstate'), '--yes')
    deepEqual([again.code, /already has a state \(serial 1, 1 resource\)/.test(again.text)], [4, true], again.text)

    // A Stack that has not run is not deleted as one that has created nothing: its state would be deleted with it.
    await stacks.create('imported-unused', { engine: terraformEngine, source: inline({ 'main.tf': resource }), suspend: true })
    const importAgain = ['import', 'imported-unused', '--from', join(directory, 'mine.tfstate'), '--yes']
    const second = await cli(...importAgain)
    deepEqual(
      [second.code, /stack\/imported in namespace default has already imported this state/.test(second.text)],
      [4, true],
      second.text,
    )
    equal((await cli(...importAgain, '--force')).code, 0)
    await stacks.stacks.delete('imported-unused', { namespace: 'default' })
    const waits = (stack: Stack) => /Deletion is waiting: the Stack is suspended/.test(condition(stack, 'Ready')?.message ?? '')
    await stacks.until('imported-unused', 'its deletion to wait', waits)
    await stacks.patch('imported-unused', { spec: { deletion: 'Orphan' } })
    await stacks.untilDeleted('imported-unused')

    writeFileSync(join(directory, 'main.tf'), resource)
    await stacks.patch('imported', { spec: { source: source() } })
    await stacks.untilReady('imported')
    const last = (await stacks.runsOf('imported')).at(-1)
    deepEqual([last?.status?.phase, last?.status?.plan?.add, last?.status?.plan?.change], ['Succeeded', 0, 0])
  })

  test('the command terraform or tofu uses the state of a Stack with its token', { skip: skipWithoutTerraformEngine }, async () => {
    await stacks.create('shared', terraform('resource "terraform_data" "a" { input = "here" }'))
    await stacks.create('not-shared', terraform('resource "terraform_data" "a" {}', { suspend: true }))
    await stacks.untilReady('shared')
    const tokenOf = async (name: string) =>
      ((await (await oarlock.client.request({ method: 'GET', path: `/state/default/${name}/token` })).json()) as { token: string }).token
    const address = `${httpUrl}/state/default/shared`
    const directory = at('user')
    mkdirSync(directory)
    const backend = `address = "${address}"\nlock_address = "${address}"\nunlock_address = "${address}"\nusername = "me"`
    writeFileSync(
      join(directory, 'main.tf'),
      `terraform {\n  backend "http" {\n${backend}\n }\n}\nresource "terraform_data" "a" { input = "here" }\n`,
    )
    const tf = (password: string, ...args: string[]) =>
      // A missing TF_CLI_CONFIG_FILE causes a warning, which tofu prints on stdout.
      runProgram(terraformEngine === 'opentofu' ? 'tofu' : 'terraform', args, {
        cwd: directory,
        env: { TF_HTTP_PASSWORD: password, CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_CLI_CONFIG_FILE: undefined },
      })
    const denied = await tf(await tokenOf('not-shared'), 'init', '-input=false', '-no-color')
    notEqual(denied.code, 0)
    match(denied.text, /requires auth|401|403/i)

    const token = await tokenOf('shared')
    const init = await tf(token, 'init', '-input=false', '-no-color')
    equal(init.code, 0, init.text)
    equal((await tf(token, 'state', 'list')).stdout, 'terraform_data.a\n')
    const plan = await tf(token, 'plan', '-input=false', '-no-color', '-detailed-exitcode')
    equal(plan.code, 0, plan.text)
    const removed = await tf(token, 'state', 'rm', 'terraform_data.a')
    equal(removed.code, 0, removed.text)
    deepEqual(await lockOf('shared'), {})
    // The next Run of the Stack uses the state that the user changed.
    await stacks.patch('shared', { metadata: { annotations: { [annotations.requestedRun]: 'apply:after' } } })
    const run = await stacks.untilRun(
      'shared',
      'a success',
      ({ spec, status }) => spec.reason === 'Requested' && status?.phase === 'Succeeded',
    )
    equal(run.status?.plan?.add, 1)
  })

  test('secret values appear in no output, file or process argument (invariant 9)', { skip: skipWithoutTerraformEngine }, async () => {
    const value = 'pa55-in-variables/+'
    const lines = 'first-line-of-key\nsecond-line-of-key'
    const output = 'se3ret-of-an-output'
    const secrets = [value, ...lines.split('\n'), output]
    const stringData = { password: value, key: lines }
    await oarlock.client.resource(secretResource).create({
      metadata: { name: 'hidden', namespace: 'default' },
      data: Object.fromEntries(Object.entries(stringData).map(([key, text]) => [key, Buffer.from(text).toString('base64')])),
    })
    const from = {
      variablesFrom: [{ secretRef: { name: 'hidden' } }],
      env: [{ name: 'TOKEN', secretKeyRef: { name: 'hidden', key: 'password' } }],
    }
    const main = `
      variable "password" { type = string }
      variable "key" { type = string }
      resource "terraform_data" "a" {
        input = var.password
        provisioner "local-exec" { command = "echo $TOKEN; env | grep TOKEN" }
      }
      output "echo" {
        value     = join("-", ["se3ret", "of-an-output"])
        sensitive = true
      }
      output "shown" {
        value     = var.key
        sensitive = true
      }`
    await stacks.create('secret-output', terraform(main, from))
    await stacks.create(
      'secret-printed',
      shell('echo "$TOKEN"; echo "$OARLOCK_VAR_key"; echo "$TOKEN" >&2; cat "$OARLOCK_VARIABLES"; exit 1', {
        ...from,
        retry: { limit: 0 },
      }),
    )
    await stacks.create(
      'secret-error',
      terraform(
        'variable "password" {}\nvariable "key" {}\nresource "terraform_data" "a" {\n  lifecycle {\n    precondition {\n      condition     = var.password == "x"\n      error_message = "got it wrong"\n    }\n  }\n}',
        { ...from, retry: { limit: 0 } },
      ),
    )
    const stopWatching = watchArguments(secrets)
    await stacks.create(
      'secret-input',
      shell('echo "got $OARLOCK_VAR_echo"; sleep 0.5', { variablesFrom: [{ stackRef: { name: 'secret-output' } }] }),
    )
    await stacks.untilReady('secret-output')
    await stacks.untilReady('secret-input')
    for (const name of ['secret-printed', 'secret-error'])
      await stacks.until(name, 'Stalled', stack => isConditionTrue(stack.status?.conditions, 'Stalled'))

    const seen: string[] = stopWatching()
    const check = (where: string, text: string) => {
      for (const secret of [...secrets, Buffer.from(value).toString('base64')])
        if (text.includes(secret)) seen.push(`${secret} in ${where}`)
    }
    const { client } = oarlock
    check('stacks', JSON.stringify((await stacks.stacks.listAll()).items))
    check('runs', JSON.stringify((await stacks.runs.listAll()).items))
    check('events', JSON.stringify((await client.resource(eventResource).listAll()).items))
    check('configmaps', JSON.stringify((await client.resource(configMapResource).listAll()).items))
    for (const path of ['/', '/metrics']) {
      const response = await fetch(`${httpUrl}${path}`, { headers: oarlock.statusHeaders })
      equal(response.status, 200)
      check(path, await response.text())
    }
    check('the output of oarlock up', oarlock.output())
    for (const name of ['secret-output', 'secret-printed', 'secret-error', 'secret-input']) {
      for (const args of [
        ['logs', name],
        ['describe', `stack/${name}`],
      ]) {
        const { text } = await runOarlock(args, { env: { KUBECONFIG: oarlock.kubeconfig } })
        ok(text.length > 20, `${args.join(' ')} has output`)
        check(`oarlock ${args.join(' ')}`, text)
      }
    }
    // Every file of the data directory: Secrets are encrypted in the database of objects.
    const files = readdirSync(dataDir, { recursive: true, withFileTypes: true }).filter(
      entry => entry.isFile() && !entry.parentPath.startsWith(work),
    )
    ok(files.some(({ parentPath }) => parentPath.includes('logs')) && files.some(({ parentPath }) => parentPath.includes('state')))
    for (const { parentPath, name } of files) {
      const path = join(parentPath, name)
      check(path, existsSync(path) ? readFileSync(path, 'latin1') : '')
    }
    deepEqual(seen, [])
    match((await runOarlock(['logs', 'secret-printed'], { env: { KUBECONFIG: oarlock.kubeconfig } })).text, /\*\*\*/)
  })
})

/** Watches the arguments of all processes until the returned function is called, which returns the matches of `words`. */
function watchArguments(words: readonly string[]): () => string[] {
  const seen = new Set<string>()
  const timer = setInterval(() => {
    for (const pid of readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        for (const word of words) if (line.includes(word)) seen.add(`${word} in the arguments of ${line.slice(0, 60)}`)
      } catch {
        // It has ended.
      }
    }
  }, 20)
  return () => {
    clearInterval(timer)
    return [...seen]
  }
}
