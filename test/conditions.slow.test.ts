/** Conditions of Stacks as a user sees them: `oarlock` and kubectl against one `oarlock up`, with real engines. Every Stack that is read is one of the documented states. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { Stack, StackSpec } from '../src/api/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { eventually } from './support/eventually.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { runOarlock, runProgram, skipWithout, skipWithoutTerraformEngine, terraformEngine } from './support/run-program.ts'
import { condition, isUpToDate, StackFixture } from './support/stacks.ts'

const inline = (files: Record<string, string>) => ({ inline: { files } })
const reasonOf = (stack: Stack) => condition(stack, 'Ready')?.reason
const is = (reason: string) => (stack: Stack) => isUpToDate(stack) && reasonOf(stack) === reason
const widestLine = (text: string) =>
  Math.max(
    ...text
      .trimEnd()
      .split('\n')
      .map(line => line.length),
  )

describe('conditions of Stacks', { concurrency: 4 }, () => {
  const up = useOarlock({ args: ['--max-workers', '4'] })
  const { dataDir, stacks, oarlock } = up
  const at = (name: string) => join(dataDir, name)

  /** The row of a Stack in `oarlock get stacks`, without its age. */
  const row = async (name: string) => {
    const { stdout } = await oarlock('get', 'stacks', name)
    const [header, line] = stdout.trimEnd().split('\n')
    match(header ?? '', /^NAME +READY +REASON +DRIFTED +APPROVAL +AGE$/)
    return line?.split(/ {2,}/).slice(1, -1)
  }
  /** A Stack whose plan has changes when the content of a file has changed: to the Stack that is drift. */
  const ofFile = (file: string, more: Partial<StackSpec> = {}): StackSpec => ({
    engine: terraformEngine,
    source: inline({ 'main.tf': `resource "terraform_data" "size" {\n  input = file("${file}")\n}\n` }),
    ...more,
  })

  test('reported drift makes the Stack not Ready until a user corrects it, and its dependent Stack continues', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    writeFileSync(at('network'), 'small')
    await stacks.create('network', ofFile(at('network'), { drift: 'Report', interval: '1s' }))
    await stacks.untilReady('network')
    await stacks.create('app', { ...shell('true'), dependsOn: [{ name: 'network' }] })
    await stacks.untilReady('app')
    deepEqual(await row('network'), ['True', 'Applied', 'False', '<none>'])

    writeFileSync(at('network'), 'large')
    const drifted = await stacks.until('network', 'drift', is('Drifted'))
    match(
      condition(drifted, 'Ready')?.message ?? '',
      /^Run network-\w+-\d+ found drift: 0 to add, 1 to change, 0 to destroy\. Correct it with: oarlock run network -n default$/,
    )
    deepEqual(await row('network'), ['False', 'Drifted', 'True', '<none>'])
    // It has not changed, so what it is waited for is known immediately.
    writeFileSync(
      at('network.yaml'),
      JSON.stringify({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Stack', metadata: { name: 'network' }, spec: drifted.spec }),
    )
    const waited = await oarlock('apply', '-f', at('network.yaml'), '--wait')
    equal(waited.code, 11, waited.text)
    match(waited.stderr, /stack\/network is applied, but differs: Run network-\w+-\d+ found drift/)

    await stacks.patch('app', { spec: { variables: { size: 'large' } } })
    await stacks.untilReady('app')

    const corrected = await oarlock('run', 'network', '--wait')
    equal(corrected.code, 0, corrected.text)
    await stacks.untilReady('network')
    deepEqual(await row('network'), ['True', 'Applied', 'False', '<none>'])
  })

  test('drift of a Stack with manual approval awaits approval, and the Stack is not Ready meanwhile', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    writeFileSync(at('manual'), 'small')
    await stacks.create('manual', ofFile(at('manual'), { approval: 'Manual', interval: '1s' }))
    const isAwaiting = (stack: Stack) => isUpToDate(stack) && isConditionTrue(stack.status?.conditions, 'AwaitingApproval')
    const first = await stacks.until('manual', 'a plan', isAwaiting)
    match(
      condition(first, 'Ready')?.message ?? '',
      new RegExp(`^Plan sha256:\\w+… of Run ${first.status?.plan?.runName} awaits approval: 1 to add`),
    )
    deepEqual(await row('manual'), ['False', 'AwaitingApproval', '<none>', 'Pending'])
    const applied = await oarlock('approve', 'manual', '--yes', '--wait')
    equal(applied.code, 0, applied.text)
    await stacks.untilReady('manual')

    writeFileSync(at('manual'), 'large')
    await stacks.until('manual', 'a plan that corrects the drift', isAwaiting)
    deepEqual(await row('manual'), ['False', 'AwaitingApproval', 'True', 'Pending'])
    const approved = await oarlock('approve', 'manual', '--yes', '--wait')
    equal(approved.code, 0, approved.text)
    await stacks.untilReady('manual')
    deepEqual(await row('manual'), ['True', 'Applied', 'False', '<none>'])
  })

  test('an Apply that fails halfway leaves Drifted Unknown until the resources are compared', {
    skip: skipWithoutTerraformEngine,
  }, async () => {
    writeFileSync(at('ok'), '')
    const main = (size: number) => `
      resource "terraform_data" "first" {
        input = ${size}
      }
      resource "terraform_data" "second" {
        input = terraform_data.first.output
        triggers_replace = ${size}
        provisioner "local-exec" { command = "test -e ${at('ok')}" }
      }`
    const spec: StackSpec = { engine: terraformEngine, source: inline({ 'main.tf': main(1) }), interval: '1h', retry: { limit: 0 } }
    await stacks.create('half', spec)
    await stacks.untilReady('half')
    deepEqual(await row('half'), ['True', 'Applied', 'False', '<none>'])
    rmSync(at('ok'))
    await stacks.patch('half', { spec: { source: inline({ 'main.tf': main(2) }) } })
    const failed = await stacks.until('half', 'RetriesExhausted', is('RetriesExhausted'))
    deepEqual(await row('half'), ['False', 'RetriesExhausted', 'Unknown', '<none>'])
    match(
      condition(failed, 'Drifted')?.message ?? '',
      /^Run half-\w+-2 failed and may have applied a part; the resources have not been compared since$/,
    )
    writeFileSync(at('ok'), '')
    const again = await oarlock('run', 'half', '--wait')
    equal(again.code, 0, again.text)
    await stacks.untilReady('half')
    deepEqual(await row('half'), ['True', 'Applied', 'False', '<none>'])
  })

  test('a failure that lasts is shown as such by get, describe and the metrics, until a Run succeeds', async () => {
    await stacks.create('failing', shell(`test -e ${at('repaired')}`, { retry: { limit: 100, initial: '1s', max: '1s' } }))
    const failing = await stacks.until('failing', 'PersistentFailure', is('PersistentFailure'), 90_000)
    ok((failing.status?.failures ?? 0) >= 10)
    ok(isConditionTrue(failing.status?.conditions, 'Reconciling'))
    const since = failing.status?.failingSince ?? ''
    deepEqual(await row('failing'), ['False', 'PersistentFailure', '<none>', '<none>'])
    const text = `Failed \\d+ times since ${since.slice(0, 10)} ${since.slice(11, 19)} UTC\\. Run failing-\\w+-\\d+`
    const described = await oarlock('describe', 'stack', 'failing')
    match(described.stdout, new RegExp(`Ready +False +PersistentFailure +\\S+ +${text}`))
    await eventually(
      async () => condition(await stacks.get('failing'), 'Ready')?.message ?? '',
      message => new RegExp(`${text} failed: .*\\. Retry \\d+ of 100 at \\d\\d:\\d\\d:\\d\\d UTC$`).test(message),
    )
    const headers = { authorization: `Bearer ${readFileSync(at('status-token'), 'utf8').trim()}` }
    const metrics = await (await fetch(`${up.process.httpUrl}/metrics`, { headers })).text()
    match(metrics, /^oarlock_stack_conditions\{namespace="default",condition="Ready",status="False",reason="PersistentFailure"\} 1$/m)
    ok(!existsSync(at('repaired')))
    writeFileSync(at('repaired'), '')
    const ready = await stacks.untilReady('failing')
    equal(ready.status?.failingSince, undefined)
  })

  test('a Run that the API server rejects is reported, and created when a user has removed the reason', async () => {
    const limited = new StackFixture(up.client, 'limited')
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'limited' } }
    await up.client.request({ method: 'POST', path: '/api/v1/namespaces', body: namespace })
    const quotas = '/api/v1/namespaces/limited/resourcequotas'
    const metadata = { name: 'no-runs', namespace: 'limited' }
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: { 'count/runs.oarlock.dev': '0' } } }
    await up.client.request({ method: 'POST', path: quotas, body: quota })
    await limited.create('web', shell('true'))
    const rejected = await limited.until('web', 'RunRejected', is('RunRejected'))
    match(
      condition(rejected, 'Ready')?.message ?? '',
      /^The API server rejects the next Run: .*exceeded quota: no-runs, .*\. Next attempt at \d\d:\d\d:\d\d UTC$/,
    )
    match(
      (await runOarlock(['describe', 'stack', 'web', '-n', 'limited'], { env: { KUBECONFIG: up.kubeconfig } })).stdout,
      /Warning +RunRejected/,
    )
    await up.client.request({ method: 'DELETE', path: `${quotas}/no-runs` })
    await limited.untilReady('web')
  })

  test('the columns of kubectl and oarlock fit into 80 characters with usual names', { skip: skipWithout('kubectl') }, async () => {
    const namespaced = new StackFixture(up.client, 'production')
    await up.client.request({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'production' } },
    })
    await namespaced.create('payments-eu', {
      ...shell('true'),
      approval: 'Manual',
      command: { plan: ['sh', '-c', 'exit 2'], apply: ['true'] },
    })
    await namespaced.until('payments-eu', 'a plan', is('AwaitingApproval'))
    await namespaced.create('shop-portal', { ...shell('true'), dependsOn: [{ name: 'payments-eu' }] })
    await namespaced.until('shop-portal', 'DependencyNotReady', is('DependencyNotReady'))
    const env = { KUBECONFIG: up.kubeconfig }
    const ofKubectl = await runProgram('kubectl', ['get', 'stacks', '-A'], { env })
    const ofOarlock = await runOarlock(['get', 'stacks', '-A'], { env })
    for (const { stdout, text } of [ofKubectl, ofOarlock]) {
      match(stdout, /^NAMESPACE +NAME +READY +REASON +DRIFTED +APPROVAL +AGE$/m)
      match(stdout, /^production +payments-eu +False +AwaitingApproval +(<none>)? +Pending +\d+s$/m)
      match(stdout, /^production +shop-portal +False +DependencyNotReady .*\d+s$/m)
      ok(widestLine(stdout) <= 80, text)
    }
    const wide = await runOarlock(['get', 'stacks', 'payments-eu', '-n', 'production', '-o', 'wide'], { env })
    match(wide.stdout, /^NAME +READY +REASON +DRIFTED +APPROVAL +AGE +ENGINE +RESOURCES +RUN +MESSAGE$/m)
  })
})

function shell(apply: string, more: Partial<StackSpec> = {}): StackSpec {
  return { engine: 'command', source: inline({ 'README.md': 'commands' }), command: { apply: ['sh', '-c', apply] }, ...more }
}
