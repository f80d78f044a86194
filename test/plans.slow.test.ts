/** Plans in full and exit codes of commands that wait, as a user sees them: `oarlock` against one `oarlock up`. */
import { deepEqual, doesNotMatch, equal, match, ok } from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Run, StackSpec } from '../src/api/index.ts'
import { configMapResource, secretResource } from '../src/kubernetes/client/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { runOarlock, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'

const inline = (files: Record<string, string>) => ({ inline: { files } })
const terraform = (main: string, more: Partial<StackSpec> = {}): StackSpec => ({
  engine: terraformEngine,
  source: inline({ 'main.tf': main }),
  ...more,
})
const skip = skipWithoutTerraformEngine

describe('plans', { concurrency: 3 }, () => {
  const up = useOarlock({ args: ['--max-workers', '4'] })
  const { dataDir, stacks, oarlock } = up

  const untilAwaiting = async (name: string, old?: string) =>
    await stacks.until(
      name,
      'a plan that awaits approval',
      ({ status }) => isConditionTrue(status?.conditions, 'AwaitingApproval') && status?.plan !== undefined && status.plan.digest !== old,
    )

  test('shows every change and value of terraform, and hides sensitive values leaf by leaf', { skip }, async () => {
    const prefix = 'ingress of the load balancer in front of the shop, port 443, from '
    const main = (cidr: string, count: number) => `
      variable "password" {
        type      = string
        sensitive = true
      }
      resource "terraform_data" "rule" {
        input = { text = "${prefix}${cidr}", login = { user = "bob", password = var.password } }
      }
      resource "terraform_data" "many" {
        count = ${count}
        input = "number-\${count.index}"
      }`
    const variables = { password: 'correct-horse-battery' }
    await stacks.create('full', terraform(main('10.0.0.0/8', 1), { variables, approval: 'Manual' }))
    const first = await untilAwaiting('full')
    const created = await oarlock('plan', '--run', first.status?.plan?.runName ?? '')
    equal(created.code, 0, created.text)
    match(created.stdout, /\+ text\s+= "ingress of .* from 10\.0\.0\.0\/8"/, 'the attributes of a new resource')
    const applied = await oarlock('approve', 'full', '--yes', '--wait')
    equal(applied.code, 0, applied.text)
    match(applied.stderr, /\+ text\s+= "ingress of .* from 10\.0\.0\.0\/8"/, 'what is approved')

    await stacks.patch('full', { spec: { source: inline({ 'main.tf': main('0.0.0.0/0', 251) }) } })
    const planned = await oarlock('plan', 'full')
    equal(planned.code, 0, planned.text)
    match(planned.stdout, /~ text\s+= "ingress .* from 10\.0\.0\.0\/8" -> "ingress .* from 0\.0\.0\.0\/0"/)
    equal(planned.stdout.match(/# terraform_data\.many\[\d+\] will be created/g)?.length, 250)
    match(planned.stdout, /\+ input\s+= "number-250"/)
    match(planned.stdout, /stack\/full: plan: 250 to add, 1 to change, 0 to destroy\n$/)
    ok(!planned.stdout.includes('\u001b'), 'colors without a terminal')

    const json = await oarlock('plan', 'full', '-o', 'json')
    equal(json.code, 0, json.text)
    type Change = { address: string; change: { after: { input: { login: object } } } }
    const { plan, add, run, digest } = JSON.parse(json.stdout) as {
      plan: { resource_changes: Change[] }
      add: number
      run: string
      digest: string
    }
    equal(add, 250)
    deepEqual(plan.resource_changes.find(({ address }) => address === 'terraform_data.rule')?.change.after.input.login, {
      user: 'bob',
      password: '(sensitive value)',
    })
    const second = await stacks.until('full', 'the plan of the last Run', ({ status }) => status?.plan?.runName === run)
    equal(second.status?.plan?.digest, digest)
    const [log, described] = [await oarlock('logs', `run/${run}`), await oarlock('describe', 'run', run)]
    for (const { code, text } of [log, described]) equal(code, 0, text)
    for (const { text } of [created, applied, planned, json, log]) doesNotMatch(text, /correct-horse-battery/)
  })

  test('a Stack whose imported state needs no change publishes its outputs without an approval', { skip }, async () => {
    const main = `resource "terraform_data" "a" { input = "zone-1" }
      output "zone" { value = terraform_data.a.output }
      output "secret" {
        value     = "s-\${terraform_data.a.output}"
        sensitive = true
      }`
    await stacks.create('origin', terraform(main))
    await stacks.untilReady('origin')
    const file = `${dataDir}/imported.tfstate`
    equal((await oarlock('state', 'pull', 'origin', '--to', file)).code, 0)
    await stacks.create('imported', terraform(main, { approval: 'Manual', suspend: true }))
    await stacks.create('dependent', {
      ...{ engine: 'command', source: inline({ a: '' }), variablesFrom: [{ stackRef: { name: 'imported' } }] },
      command: { apply: ['sh', '-c', 'printf \'{"got":"%s %s"}\' "$OARLOCK_VAR_zone" "$OARLOCK_VAR_secret" > "$OARLOCK_OUTPUTS"'] },
    })
    const pushed = await oarlock('state', 'push', 'imported', file, '--yes')
    equal(pushed.code, 0, pushed.text)
    await stacks.patch('imported', { spec: { suspend: false } })
    await stacks.untilReady('dependent')
    const { status } = await stacks.get('imported')
    deepEqual([status?.outputs, status?.resources, status?.approval], [{ zone: 'zone-1' }, 1, undefined])
    deepEqual(
      (await stacks.runsOf('imported')).map(({ spec }) => spec.type),
      ['Plan'],
    )
    const secret = await up.client.resource(secretResource).get('dependent-outputs', { namespace: 'default' })
    equal(Buffer.from(secret.data?.got ?? '', 'base64').toString(), '"zone-1 s-zone-1"')
  })

  test('a change of fields that do not affect the infrastructure creates no Run', async () => {
    await stacks.create('calm', { engine: 'command', source: inline({ a: '' }), command: { apply: ['true'] } })
    const first = await stacks.untilReady('calm')
    const specs = [
      { historyLimit: 3 },
      { interval: '12h' },
      { suspend: true },
      { suspend: false },
      { timeout: '5m' },
      { approval: 'Manual' },
    ]
    for (const spec of specs) {
      await stacks.patch('calm', { spec })
      const { status, metadata } = await stacks.untilReady('calm')
      deepEqual([status?.lastRunNumber, status?.applied?.generation], [1, metadata.generation], JSON.stringify(spec))
    }
    equal((await stacks.get('calm')).status?.applied?.runName, first.status?.applied?.runName)
    await stacks.patch('calm', { spec: { variables: { a: 1 } } })
    equal((await untilAwaiting('calm')).status?.lastRunNumber, 2)
  })

  test('does not apply an approved plan whose state or inputs have changed since the approval', { skip }, async () => {
    const values = up.client.resource(configMapResource)
    await values.create({ metadata: { name: 'values', namespace: 'default' }, data: { size: '1' } })
    const main = (input: number) => `
      variable "size" {}
      resource "terraform_data" "a" { input = "${input}-\${var.size}" }`
    await stacks.create('replaced', terraform(main(1), { variablesFrom: [{ configMapRef: { name: 'values' } }] }))
    await stacks.untilReady('replaced')
    await stacks.patch('replaced', { spec: { approval: 'Manual', source: inline({ 'main.tf': main(2) }) } })
    const first = await untilAwaiting('replaced')
    // The approved plan is not applied before the Stack is resumed.
    await stacks.patch('replaced', { spec: { suspend: true } })
    equal((await oarlock('approve', 'replaced', '--yes')).code, 0)
    const file = `${dataDir}/replaced.tfstate`
    equal((await oarlock('state', 'pull', 'replaced', '--to', file)).code, 0)
    const state = JSON.parse(readFileSync(file, 'utf8')) as { serial: number }
    writeFileSync(file, JSON.stringify({ ...state, serial: state.serial + 1 }))
    equal((await oarlock('state', 'push', 'replaced', file, '--yes')).code, 0)
    await stacks.patch('replaced', { spec: { suspend: false } })
    const second = await untilAwaiting('replaced', first.status?.plan?.digest)
    const runs = (await stacks.runsOf('replaced')).map(
      ({ spec, status }) => `${spec.type} ${spec.reason} ${status?.reason ?? status?.phase}`,
    )
    deepEqual(runs.slice(1), ['Plan NewGeneration Succeeded', 'Apply Approved PlanOutdated', 'Plan PlanOutdated Succeeded'])

    await stacks.patch('replaced', { spec: { suspend: true } })
    equal((await oarlock('approve', 'replaced', '--yes')).code, 0)
    await values.patch('values', { data: { size: '2' } }, { type: 'merge', namespace: 'default', fieldManager: 'kubectl-edit' })
    await stacks.until('replaced', 'without the plan', ({ status }) => status?.plan === undefined)
    await stacks.patch('replaced', { spec: { suspend: false } })
    const third = await untilAwaiting('replaced', second.status?.plan?.digest)
    equal((await stacks.runsOf('replaced')).filter(({ spec }) => spec.type === 'Apply').length, 2)
    const shown = await oarlock('approve', 'replaced', '--yes', '--wait', '--plan', third.status?.plan?.digest ?? '')
    equal(shown.code, 0, shown.text)
    match(shown.stderr, /"1-1" -> "2-2"/)
  })

  test('shows the fields of changed objects, but no data of Secrets', async () => {
    const secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'login' },
      stringData: { password: 'first-password', user: 'bob' },
    }
    const map = (lines: number) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings' },
      data: { 'app.conf': Array.from({ length: 100 }, (_, index) => `line ${index === 50 ? lines : index}`).join('\n'), mode: `m${lines}` },
    })
    const files = (lines: number, password: string) =>
      inline({
        'secret.json': JSON.stringify({ ...secret, stringData: { ...secret.stringData, password } }),
        'map.json': JSON.stringify(map(lines)),
      })
    await stacks.create('objects', { engine: 'manifests', source: files(1000, 'first-password') })
    await stacks.untilReady('objects')
    const first = await oarlock('plan', '--run', (await stacks.runsOf('objects'))[0]!.metadata.name)
    match(first.stdout, /\+ {3}password: \(sensitive value\)/)
    await stacks.patch('objects', { spec: { suspend: true, source: files(2000, 'second-password') } })
    await stacks.patch('objects', { spec: { suspend: false, approval: 'Manual' } })
    const planned = await oarlock('plan', 'objects')
    equal(planned.code, 0, planned.text)
    match(planned.stdout, /~ ConfigMap default\/settings\n/)
    match(planned.stdout, / {4}- line 1000\n {8}\+ line 2000\n {10}line 51\n/)
    match(planned.stdout, /~ data\.mode: "m1000" → "m2000"/)
    match(planned.stdout, /~ data\.password: \(sensitive value\) → \(sensitive value\)/)
    const json = await oarlock('plan', 'objects', '-o', 'json')
    type Change = { kind: string; changedFields?: string[]; after: { data: Record<string, string> } }
    const { plan } = JSON.parse(json.stdout) as { plan: { changes: Change[] } }
    const change = plan.changes.find(({ kind }) => kind === 'Secret')
    deepEqual(change?.changedFields, ['data.password'])
    deepEqual(change?.after.data, { password: '(sensitive value)', user: '(sensitive value)' })
    for (const { text } of [first, planned, json])
      for (const password of ['first-password', 'second-password']) {
        ok(!text.includes(password))
        ok(!text.includes(Buffer.from(password).toString('base64')))
      }
  })

  test('shows everything that a plan command prints, without the values of Secrets', async () => {
    await up.client.resource(secretResource).create({
      metadata: { name: 'token', namespace: 'default' },
      data: { TOKEN: Buffer.from('tok-abcdef-123456').toString('base64') },
    })
    await stacks.create('printed', {
      engine: 'command',
      source: inline({ a: '' }),
      approval: 'Manual',
      env: [{ name: 'TOKEN', secretKeyRef: { name: 'token', key: 'TOKEN' } }],
      command: { plan: ['sh', '-c', 'i=0; while [ $i -lt 300 ]; do echo "step $i $TOKEN"; i=$((i+1)); done; exit 2'], apply: ['true'] },
    })
    const { status } = await untilAwaiting('printed')
    const shown = await oarlock('plan', 'printed', '--run', status?.plan?.runName ?? '')
    equal(shown.code, 0, shown.text)
    equal(shown.stdout.match(/^step \d+ \*\*\*$/gm)?.length, 300)
    const approved = await oarlock('approve', 'printed', '--yes', '--wait')
    equal(approved.code, 0, approved.text)
    match(approved.stderr, /^step 299 \*\*\*$/m)
  })

  test('approves no plan that is too long to be shown, unless its digest is given', async () => {
    const line = 'x'.repeat(99)
    await stacks.create('long', {
      ...{ engine: 'command', source: inline({ a: '' }), approval: 'Manual' },
      command: { plan: ['sh', '-c', `yes ${line} | head -n 110000; exit 2`], apply: ['true'] },
    })
    const { status } = await untilAwaiting('long')
    const refused = await oarlock('approve', 'long', '--yes')
    equal(refused.code, 1)
    const end = refused.stderr.slice(-500)
    match(end, /\nNOT SHOWN: 5143 more lines \(514300 bytes\): the plan is larger than 10485760 bytes\n/)
    match(end, /the plan cannot be shown in full, so it is not approved: 5143 lines are missing\n/)
    equal((await oarlock('approve', 'long', '--yes', '--plan', status?.plan?.digest ?? '', '--wait')).code, 0)
  })

  test('exit codes: pending approval, failure and cancellation are distinct', async () => {
    const source = inline({ a: '' })
    const sleep = ['sh', '-c', 'exec sleep 600']
    const plan = ['sh', '-c', 'test -e "$OARLOCK_STATE" || exit 2']
    const apply = ['sh', '-c', 'echo "{}" > "$OARLOCK_STATE"']
    await stacks.create('code-manual', { engine: 'command', source, approval: 'Manual', command: { plan, apply } })
    const pending = await oarlock('run', 'code-manual', '--wait')
    equal(pending.code, 9, pending.text)
    equal(pending.stdout, '')
    match(
      pending.stderr,
      /awaits approval: 1 to add, 0 to change, 0 to destroy\n {2}hint: show and approve it: oarlock approve code-manual -n default\n/,
    )
    equal((await oarlock('approve', 'code-manual', '--yes', '--wait')).code, 0)
    const unchanged = await oarlock('run', 'code-manual', '--wait')
    deepEqual([unchanged.code, unchanged.stdout], [0, 'stack/code-manual is up to date\n'], unchanged.text)
    await stacks.patch('code-manual', { spec: { command: { plan: ['sh', '-c', 'exit 2'], apply: ['false'] } } })
    await untilAwaiting('code-manual')
    equal((await oarlock('approve', 'code-manual', '--yes', '--wait')).code, 1)

    const manifest = (name: string, spec: string) =>
      `{ apiVersion: oarlock.dev/v1alpha1, kind: Stack, metadata: { name: ${name} }, spec: { engine: command, source: { inline: { files: { a: x } } }, ${spec} } }`
    const applyAndWait = async (name: string, spec: string) =>
      await runOarlock(['apply', '-f', '-', '--wait', '-n', 'default'], { input: manifest(name, spec), env: { KUBECONFIG: up.kubeconfig } })
    for (const [name, spec, code, message] of [
      ['wait-ready', 'command: { apply: ["true"] }', 0, /^stack\/wait-ready is Ready$/m],
      ['wait-manual', 'approval: Manual, command: { apply: ["true"] }', 9, /awaits approval: 1 to add/],
      ['wait-failed', 'retry: { limit: 0 }, command: { apply: ["false"] }', 1, /stack\/wait-failed failed: RetriesExhausted: /],
      ['wait-suspended', 'suspend: true, command: { apply: ["true"] }', 1, /is suspended/],
    ] as const) {
      const waited = await applyAndWait(name, spec)
      equal(waited.code, code, waited.text)
      match(waited.stderr, message)
    }
    await stacks.create('code-failed', { engine: 'command', source, command: { apply: ['false'] }, retry: { limit: 0 } })
    equal((await oarlock('run', 'code-failed', '--wait')).code, 1)

    await stacks.create('code-canceled', { engine: 'command', source, command: { apply: sleep, destroy: sleep } })
    const first = await stacks.untilRun('code-canceled', 'phase Applying', ({ status }) => status?.phase === 'Applying')
    const canceled = await oarlock('cancel', `run/${first.metadata.name}`, '--wait')
    deepEqual([canceled.code, canceled.stdout.split('\n').at(-2)], [0, `run/${first.metadata.name} ended as Canceled`], canceled.text)
    const running = oarlock('run', 'code-canceled', '--wait')
    const isApplying = (type: string) => (run: Run) =>
      run.spec.type === type && run.status?.phase === 'Applying' && run.metadata.name !== first.metadata.name
    await stacks.untilRun('code-canceled', 'phase Applying', isApplying('Apply'))
    equal((await oarlock('cancel', 'code-canceled')).code, 0)
    equal((await running).code, 10)
    const destroying = oarlock('destroy', 'code-canceled', '--yes')
    await stacks.untilRun('code-canceled', 'phase Applying of the Destroy', isApplying('Destroy'))
    const deleting = oarlock('delete', 'stack', 'code-canceled')
    equal((await oarlock('cancel', 'code-canceled')).code, 0)
    for (const { code, text } of await Promise.all([destroying, deleting])) equal(code, 10, text)
    await stacks.patch('code-canceled', { spec: { deletion: 'Orphan' } })
    await stacks.untilDeleted('code-canceled')
  })
})
