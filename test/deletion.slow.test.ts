/** Deletion of Stacks as users do it, with real engines: what it waits for, and what it destroys. */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { annotations, type Stack, type StackSpec } from '../src/api/index.ts'
import { executeDestruction } from '../src/cli/destroy/execute-destruction.ts'
import { planDestructions } from '../src/cli/destroy/plan-destruction.ts'
import { configMapResource, namespaceResource, secretResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { GitRepository } from './support/git-repository.ts'
import { makeDataDir, type OarlockProcess, removeDirectory, startOarlock } from './support/oarlock-process.ts'
import { type ProgramResult, runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, StackFixture } from './support/stacks.ts'
import { oarlockInTerminal, skipWithoutTerminal } from './support/terminal.ts'

const awaitsApproval = (stack: Stack) =>
  stack.metadata.deletionTimestamp !== undefined && isConditionTrue(stack.status?.conditions, 'AwaitingApproval')

describe('deletion of Stacks', { concurrency: 4 }, () => {
  const dataDir = makeDataDir()
  const work = join(dataDir, 'work')
  const at = (name: string) => join(work, name)
  let oarlock: OarlockProcess
  let stacks: StackFixture
  let cli: (...args: string[]) => Promise<ProgramResult>

  before(async () => {
    mkdirSync(work)
    oarlock = await startOarlock(dataDir, ['--max-workers', '4', '--allow-path', work])
    stacks = new StackFixture(oarlock.client)
    cli = async (...args) => await runOarlock([...args, '--kubeconfig', oarlock.kubeconfig])
  })
  after(async () => {
    equal(await oarlock.stop(), 0)
    removeDirectory(dataDir)
  })

  /** Two resources, whose destruction is written to a file. */
  const recorded = (file: string, more: Partial<StackSpec> = {}): StackSpec => ({
    engine: terraformEngine,
    source: {
      inline: {
        files: {
          'main.tf': `resource "terraform_data" "part" {
            count = 2
            input = "${file}"
            provisioner "local-exec" {
              when    = destroy
              command = "echo destroyed >> \${self.output}"
            }
          }`,
        },
      },
    },
    ...more,
  })
  const destroyedIn = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).length : 0)

  test('a Stack with approval Manual is destroyed only by a plan that was shown and approved', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const file = at('manual')
    await stacks.create('manual', recorded(file))
    await stacks.untilReady('manual')
    await stacks.patch('manual', { spec: { approval: 'Manual' } })
    const deleted = await cli('delete', 'stack', 'manual', '--no-wait')
    equal(deleted.code, 0, deleted.text)

    const waiting = await stacks.until('manual', 'AwaitingApproval', awaitsApproval)
    match(
      condition(waiting, 'Ready')?.message ?? '',
      /^Deletion is waiting\. Plan \S+ of Run \S+ awaits approval: 0 to add, 0 to change, 2 to destroy\. Approve it with: oarlock approve manual -n default, or set spec\.deletion to Orphan/,
    )
    deepEqual(
      (await stacks.runsOf('manual')).map(({ spec }) => spec.type),
      ['Apply', 'Plan'],
    )
    equal(destroyedIn(file), 0)

    const approved = await cli('approve', 'manual', '--yes', '--wait', '--timeout', '2m')
    equal(approved.code, 0, approved.text)
    match(approved.stderr, /terraform_data\.part\[1\] will be destroyed/)
    match(approved.stdout, /stack\/manual destroyed\n$/)
    equal(destroyedIn(file), 2)
    ok(!(await stacks.stacks.getOrUndefined('manual', { namespace: 'default' })))
  })

  const isStalled = (stack: Stack) => isConditionTrue(stack.status?.conditions, 'Stalled')
  const failsOnce = { retry: { limit: 0 } }

  test('a Stack whose configuration is broken from the start is removed without a Destroy', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const source = { inline: { files: { 'main.tf': 'resource "terraform_data" "a" { input = ' } } }
    await stacks.create('broken', { engine: terraformEngine, source, ...failsOnce })
    await stacks.until('broken', 'Stalled', isStalled)
    const deleted = await cli('delete', 'stack', 'broken', '--timeout', '30s')
    equal(deleted.code, 0, deleted.text)
  })

  test('a Stack whose first Apply failed half-way is destroyed', { skip: skipWithoutTerraformEngine }, async () => {
    const file = at('half')
    const spec = recorded(file, failsOnce)
    const failing = `resource "terraform_data" "last" {
      depends_on = [terraform_data.part]
      provisioner "local-exec" { command = "exit 1" }
    }`
    const files = { ...spec.source.inline?.files, 'last.tf': failing }
    await stacks.create('half', { ...spec, source: { inline: { files } } })
    await stacks.until('half', 'Stalled', isStalled)
    const deleted = await cli('delete', 'stack', 'half', '--timeout', '2m')
    equal(deleted.code, 0, deleted.text)
    equal(destroyedIn(file), 2)
  })

  const oneFile = (text: string): StackSpec => ({ engine: terraformEngine, source: { inline: { files: { 'main.tf': text } } } })
  const exists = async (name: string) => (await stacks.stacks.getOrUndefined(name, { namespace: 'default' })) !== undefined

  describe('oarlock destroy', { concurrency: 4, skip: skipWithoutTerraformEngine }, () => {
    test('shows the plan before it asks in a terminal, and destroys exactly that after y', { skip: skipWithoutTerminal }, async () => {
      const file = at('asked')
      await stacks.create('asked', recorded(file))
      await stacks.untilReady('asked')
      const args = ['destroy', 'asked', '--kubeconfig', oarlock.kubeconfig, '--timeout', '2m']
      const question = /destroy 2 resources of stack\/asked in namespace default, and delete the Stack\? \[y\/N\] $/
      const refused = await oarlockInTerminal(args, { question, answer: '\r' })
      equal(refused.code, 1, refused.text)
      match(refused.text, /terraform_data\.part\[1\] will be destroyed[\s\S]*\[y\/N\] [\s\S]*not confirmed: nothing was changed/)
      const kept = await stacks.get('asked')
      deepEqual([kept.metadata.deletionTimestamp, kept.metadata.annotations?.[annotations.destroyPlan]], [undefined, undefined])
      equal(destroyedIn(file), 0)

      const confirmed = await oarlockInTerminal(args, { question, answer: 'y\r' })
      equal(confirmed.code, 0, confirmed.text)
      match(confirmed.text, /terraform_data\.part\[1\] will be destroyed[\s\S]*\[y\/N\] y[\s\S]*stack\/asked destroyed\n$/)
      equal(destroyedIn(file), 2)
      ok(!(await exists('asked')))
    })

    test('in a terminal approves the plan that it has shown, where the Stack requires approval', {
      skip: skipWithoutTerminal,
    }, async () => {
      const file = at('once')
      await stacks.create('once', recorded(file, { approval: 'Manual' }))
      await stacks.until('once', 'AwaitingApproval', ({ status }) => isConditionTrue(status?.conditions, 'AwaitingApproval'))
      const options = ['--kubeconfig', oarlock.kubeconfig, '--timeout', '2m']
      const approving = ['approve', 'once', '--wait', ...options]
      const question = /approve this plan of stack\/once\? \[y\/N\] $/
      const refused = await oarlockInTerminal(approving, { question, answer: 'n\r' })
      equal(refused.code, 1, refused.text)
      match(refused.text, /terraform_data\.part\[0\] will be created[\s\S]*not confirmed: nothing was changed/)
      equal((await stacks.get('once')).metadata.annotations?.[annotations.approvedPlan], undefined)
      const approved = await oarlockInTerminal(approving, { question, answer: 'yes\r' })
      equal(approved.code, 0, approved.text)
      match(approved.text, /stack\/once applied\n$/)

      const destroyed = await oarlockInTerminal(['destroy', 'once', ...options], {
        question: /and delete the Stack\? \[y\/N\] $/,
        answer: 'y\r',
      })
      equal(destroyed.code, 0, destroyed.text)
      equal(destroyed.text.match(/\[y\/N\]/g)?.length, 1)
      equal(destroyedIn(file), 2)
    })

    test('without a terminal asks nothing and destroys nothing without --yes, which shows the plan', async () => {
      const file = at('script')
      await stacks.create('script', recorded(file))
      await stacks.untilReady('script')
      const refused = await cli('destroy', 'script')
      equal(refused.code, 2, refused.text)
      match(refused.stderr, /cannot ask for confirmation .*: stdin is not a terminal\n +hint: confirm with --yes/)
      equal((await stacks.get('script')).metadata.deletionTimestamp, undefined)
      const destroyed = await cli('destroy', 'script', '--yes', '--timeout', '2m')
      equal(destroyed.code, 0, destroyed.text)
      match(destroyed.stderr, /terraform_data\.part\[0\] will be destroyed/)
      equal(destroyedIn(file), 2)
    })

    test('destroys nothing that differs from the plan that was shown: another plan is shown and confirmed', async () => {
      const file = at('moved')
      await stacks.create('moved', recorded(file))
      await stacks.untilReady('moved')
      await stacks.patch('moved', { metadata: { annotations: { [annotations.requestedRun]: 'plan-destroy:1' } } })
      const planned = await stacks.untilRun(
        'moved',
        'plan',
        ({ spec, status }) => spec.planMode === 'Destroy' && status?.phase === 'Succeeded',
      )
      // The state changes after the plan.
      const files = recorded(file).source.inline!.files
      await stacks.patch('moved', {
        spec: { source: { inline: { files: { 'main.tf': files['main.tf']!.replace('count = 2', 'count = 3') } } } },
      })
      await stacks.until('moved', 'third resource', ({ status }) => status?.resources === 3)
      const confirmation = { [annotations.destroyPlan]: planned.status!.plan!.digest }
      await stacks.patch('moved', { metadata: { annotations: confirmation } })
      const deleted = await cli('delete', 'stack', 'moved', '--timeout', '2m')
      equal(deleted.code, 9, deleted.text)
      match(
        deleted.stderr,
        /awaits approval: 0 to add, 0 to change, 3 to destroy\n +hint: show and confirm it: oarlock destroy moved -n default/,
      )
      equal(destroyedIn(file), 0)
      const approving = await cli('approve', 'moved', '--yes')
      equal(approving.code, 1, approving.text)
      const confirmed = await cli('destroy', 'moved', '--yes', '--timeout', '2m')
      equal(confirmed.code, 0, confirmed.text)
      match(confirmed.stderr, /terraform_data\.part\[2\] will be destroyed/)
      equal(destroyedIn(file), 3)
    })

    test('of a Stack without resources does not destroy what it creates before the deletion begins', async () => {
      const file = at('first')
      await stacks.create('first', { ...oneFile('broken {'), ...failsOnce })
      const before = await stacks.until('first', 'Stalled', isStalled)
      const listOthers = async () => (await stacks.stacks.listAll({ namespace: 'default' })).items
      const options = { what: 'stack/first', timeoutMs: 60_000, useCurrentSource: false, listOthers, includesOthers: false }
      const [planned] = await planDestructions(oarlock.client, [before], options)
      equal(planned!.plan, undefined)
      // While the user is asked.
      await stacks.patch('first', { spec: { source: recorded(file).source } })
      await stacks.untilReady('first')
      await rejects(executeDestruction(oarlock.client, planned!, { wait: true, timeoutMs: 60_000 }), {
        exitCode: 4,
        message: 'stack/first has changed since its destruction was shown: nothing is destroyed',
      })
      // As if its source had changed, and not its spec.
      const shown = { ...planned!, stack: await stacks.get('first') }
      await rejects(executeDestruction(oarlock.client, shown, { wait: true, timeoutMs: 60_000 }), {
        exitCode: 9,
        hint: 'show and confirm it: oarlock destroy first -n default',
      })
      equal(destroyedIn(file), 0)
      const confirmed = await cli('destroy', 'first', '--yes', '--timeout', '2m')
      equal(confirmed.code, 0, confirmed.text)
      match(confirmed.stderr, /terraform_data\.part\[1\] will be destroyed/)
      equal(destroyedIn(file), 2)
    })

    test('reports everything that blocks it, before it plans anything, and again after the plan', async () => {
      const protectedPart = 'resource "terraform_data" "part" {\n lifecycle { prevent_destroy = true }\n}\noutput "x" { value = 1 }'
      await stacks.create('blocked', { ...oneFile(protectedPart), deletionProtection: true })
      await stacks.create('user', { ...oneFile(''), variablesFrom: [{ stackRef: { name: 'blocked', outputs: {} } }] })
      await stacks.untilReady('user')
      const locked = await cli('state', 'lock', 'blocked')
      equal(locked.code, 0, locked.text)
      const refused = await cli('destroy', 'blocked', '--yes')
      equal(refused.code, 4, refused.text)
      for (const reason of [
        /cannot destroy stack\/blocked, for 3 reasons:\n/,
        /- spec\.deletionProtection of the Stack is true: set it to false/,
        /- Stacks depend on it: user; destroy them first, or all Stacks of the namespace with: oarlock destroy --all -n default\n/,
        /- the state is locked by .*: wait for the holder, or release the lock: oarlock state unlock blocked -n default/,
      ])
        match(refused.stderr, reason)
      equal((await stacks.get('blocked')).metadata.deletionTimestamp, undefined)

      const destroyPlans = async () => (await stacks.runsOf('blocked')).filter(({ spec }) => spec.planMode === 'Destroy')
      deepEqual(await destroyPlans(), [])

      await stacks.patch('blocked', { spec: { suspend: true } })
      match(
        (await cli('destroy', 'blocked', '--yes')).stderr,
        /for 4 reasons:[\s\S]*- the Stack is suspended: resume it first: oarlock resume blocked -n default/,
      )

      equal((await cli('state', 'unlock', 'blocked', '--yes')).code, 0)
      equal((await cli('delete', 'stack', 'user', '--timeout', '1m')).code, 0)
      await stacks.patch('blocked', { spec: { suspend: false, deletionProtection: false } })
      const planning = cli('destroy', 'blocked', '--yes')
      await stacks.untilRun('blocked', 'plan of the destruction', ({ spec }) => spec.planMode === 'Destroy')
      await stacks.patch('blocked', { spec: { deletionProtection: true } })
      const planned = await planning
      equal(planned.code, 4, planned.text)
      match(
        planned.stderr,
        /cannot destroy stack\/blocked, for 2 reasons:\n *- spec\.deletionProtection [^\n]*\n *- run\/blocked-\S+ cannot plan its destruction: .*prevent_destroy/s,
      )
      equal((await destroyPlans()).length, 1)
    })
  })

  describe('the destruction of a Stack', { concurrency: 4, skip: skipWithoutTerraformEngine }, () => {
    const withInputs = (file: string): StackSpec => ({
      ...oneFile(`
        variable "file" { type = string }
        variable "region" { type = string }
        variable "key" { type = string }
        resource "terraform_data" "part" {
          input = { file = var.file, region = var.region }
          provisioner "local-exec" {
            when    = destroy
            command = "echo \${self.output.region} $TOKEN $MODE $TF_VAR_key >> \${self.output.file}"
          }
        }
        output "key" { 
          value     = var.key
          sensitive = true
        }`),
      variables: { file },
      env: [{ name: 'MODE', value: 'applied' }],
    })

    test('uses the source and inputs that were applied last, although all of them are gone', async () => {
      const file = at('inputs')
      const [secrets, configMaps] = [oarlock.client.resource(secretResource), oarlock.client.resource(configMapResource)]
      const metadata = (name: string) => ({ name, namespace: 'default' })
      await secrets.create({ metadata: metadata('token'), stringData: { token: 'first' } })
      await secrets.create({ metadata: metadata('gone'), stringData: { key: 'k' } })
      await configMaps.create({ metadata: metadata('region'), data: { region: 'north' } })
      const spec = withInputs(file)
      await stacks.create('inputs', {
        ...spec,
        variablesFrom: [{ configMapRef: { name: 'region' } }, { secretRef: { name: 'gone' } }],
        env: [...spec.env!, { name: 'TOKEN', secretKeyRef: { name: 'token', key: 'token' } }],
      })
      await stacks.untilReady('inputs')
      await stacks.patch('inputs', {
        spec: {
          source: { inline: { files: { 'main.tf': 'broken {' } } },
          env: [{ name: 'MODE', value: 'present' }],
          variables: { file: '/nowhere' },
        },
      })
      await stacks.until('inputs', 'Stalled', isStalled)
      await configMaps.delete('region', { namespace: 'default' })
      await secrets.delete('gone', { namespace: 'default' })
      // A credential that was renewed since.
      await secrets.patch('token', { stringData: { token: 'second' } }, { type: 'merge', namespace: 'default' })
      const destroyed = await cli('destroy', 'inputs', '--yes', '--timeout', '2m')
      equal(destroyed.code, 0, destroyed.text)
      equal(readFileSync(file, 'utf8'), 'north second applied\n')
    })

    test('uses the files of a directory that has changed since', async () => {
      const [file, directory] = [at('path'), at('source')]
      mkdirSync(join(directory, 'modules'), { recursive: true })
      const { 'main.tf': text = '' } = recorded(file).source.inline!.files
      writeFileSync(join(directory, 'main.tf'), 'module "a" { source = "./modules" }')
      writeFileSync(join(directory, 'modules', 'a.tf'), text)
      await stacks.create('path', { engine: terraformEngine, source: { path: { path: directory } } })
      await stacks.untilReady('path')
      writeFileSync(join(directory, 'main.tf'), 'broken {')
      rmSync(join(directory, 'modules'), { recursive: true })
      const deleted = await cli('delete', 'stack', 'path', '--timeout', '2m')
      equal(deleted.code, 0, deleted.text)
      equal(destroyedIn(file), 2)
    })

    test('reports a repository that no longer has the commit, and uses the present source on request', async () => {
      const file = at('git')
      const files = recorded(file).source.inline!.files as Record<string, string>
      const repository = new GitRepository(at('repository'))
      repository.commit(files)
      await stacks.create('git', { engine: terraformEngine, source: { git: { url: repository.url }, interval: '1h' } })
      await stacks.untilReady('git')
      // A change of the source is then planned, not applied.
      await stacks.patch('git', { spec: { approval: 'Manual' } })
      rmSync(repository.path, { recursive: true })
      const refused = await cli('destroy', 'git', '--yes', '--timeout', '2m')
      equal(refused.code, 4, refused.text)
      match(
        refused.stderr,
        /AppliedSourceUnavailable: the source that was applied last cannot be read: .*; restore it, or destroy with the present one: oarlock destroy git -n default --use-current-source/,
      )
      new GitRepository(at('repository')).commit({ ...files, 'more.tf': 'output "x" { value = 1 }' })
      const destroyed = await cli('destroy', 'git', '--use-current-source', '--yes', '--timeout', '2m')
      equal(destroyed.code, 0, destroyed.text)
      equal(await exists('git'), false)
      equal(destroyedIn(file), 2)
    })

    test('uses the present source on request, also of a Stack that is being deleted', async () => {
      const file = at('deleting')
      const files = recorded(file).source.inline!.files as Record<string, string>
      const repository = new GitRepository(at('lost-repository'))
      repository.commit(files)
      await stacks.create('deleting', { engine: terraformEngine, source: { git: { url: repository.url }, interval: '1h' } })
      await stacks.untilReady('deleting')
      rmSync(repository.path, { recursive: true })
      equal((await cli('delete', 'stack', 'deleting', '--no-wait')).code, 0)
      const waiting = await stacks.until(
        'deleting',
        'AppliedSourceUnavailable',
        stack => condition(stack, 'Ready')?.reason === 'AppliedSourceUnavailable',
      )
      match(condition(waiting, 'Ready')?.message ?? '', /oarlock destroy deleting -n default --use-current-source/)
      new GitRepository(at('lost-repository')).commit({ ...files, 'more.tf': 'output "x" { value = 1 }' })
      const destroyed = await cli('destroy', 'deleting', '--use-current-source', '--yes', '--timeout', '2m')
      equal(destroyed.code, 0, destroyed.text)
      equal(await exists('deleting'), false)
      equal(destroyedIn(file), 2)
    })
  })

  test('oarlock destroy --all destroys all Stacks of a namespace, dependents first, after one question', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    const namespace = 'team'
    await oarlock.client.resource(namespaceResource).create({ metadata: { name: namespace } })
    const team = new StackFixture(oarlock.client, namespace)
    const file = at('team')
    const part = (name: string): StackSpec => ({
      ...oneFile(`resource "terraform_data" "part" {
        input = "${file}"
        provisioner "local-exec" {
          when    = destroy
          command = "echo ${name} >> \${self.output}"
        }
      }`),
    })
    await team.create('network', part('network'))
    await team.create('database', { ...part('database'), dependsOn: [{ name: 'network' }] })
    await team.create('app', { ...part('app'), dependsOn: [{ name: 'database' }, { name: 'network' }], deletionProtection: true })
    await team.create('empty', { ...oneFile('broken {'), ...failsOnce })
    await team.untilReady('app')
    await team.until('empty', 'Stalled', isStalled)

    const blocked = await cli('destroy', '--all', '-n', namespace, '--yes', '--timeout', '2m')
    equal(blocked.code, 4, blocked.text)
    match(blocked.stderr, /cannot destroy namespace\/team: stack\/app: spec\.deletionProtection of the Stack is true/)
    ok(!existsSync(file))
    const rejected = await cli('delete', 'namespace', namespace)
    equal(rejected.code, 4, rejected.text)
    match(rejected.stderr, /Destroy them first with "oarlock destroy --all -n team"/)

    await team.patch('app', { spec: { deletionProtection: false } })
    const withoutAll = await cli('destroy', '-n', namespace, '--yes')
    equal(withoutAll.code, 2, withoutAll.text)
    match(withoutAll.stderr, /hint: use "oarlock destroy STACK", or "oarlock destroy --all -n NAMESPACE"/)
    deepEqual(
      (await Promise.all(['app', 'database', 'network'].map(name => team.get(name)))).filter(({ metadata }) => metadata.deletionTimestamp),
      [],
    )
    const unasked = await cli('destroy', '--all', '-n', namespace, '--timeout', '2m')
    equal(unasked.code, 2, unasked.text)
    match(unasked.stderr, /destroy 3 resources of 4 Stacks in namespace team, and delete the Stacks\?/)
    const planned = (await team.runsOf('network')).at(-1)!.spec.epoch
    const interrupted = cli('destroy', '--all', '-n', namespace, '--yes', '--timeout', '2m')
    await team.untilRun('network', 'another plan of the destruction', ({ spec }) => spec.epoch > planned)
    await team.create('late', { ...oneFile(''), suspend: true, dependsOn: [{ name: 'network' }] })
    const { code, stderr, text } = await interrupted
    equal(code, 4, text)
    match(stderr, /cannot destroy namespace\/team: stack\/network: Stacks depend on it: late; destroy them first/)
    ok(!existsSync(file))
    equal((await cli('delete', 'stack', 'late', '-n', namespace, '--timeout', '1m')).code, 0)

    const destroying = cli('destroy', '--all', '-n', namespace, '--yes', '--timeout', '2m')
    await team.untilRun('app', 'Destroy', ({ spec }) => spec.type === 'Destroy')
    await team.create('later', { ...oneFile(''), suspend: true })
    const destroyed = await destroying
    equal(destroyed.code, 1, destroyed.text)
    match(
      destroyed.stderr,
      /a Stack that was created since remains in namespace\/team: later\n +hint: "oarlock destroy --all -n team" continues/,
    )
    equal((await cli('delete', 'stack', 'later', '-n', namespace, '--timeout', '1m')).code, 0)
    match(destroyed.stderr, /order: app, empty; then database; then network\n/)
    equal(destroyed.stderr.match(/terraform_data\.part will be destroyed/g)?.length, 3)
    match(destroyed.stdout, /stack\/network destroyed \(4 of 4\)\n$/)
    equal(readFileSync(file, 'utf8'), 'app\ndatabase\nnetwork\n')
    equal((await cli('delete', 'namespace', namespace, '--timeout', '30s')).code, 0)
  })
})
