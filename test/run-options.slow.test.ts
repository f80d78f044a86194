/** Runs with options (`--target`, `--replace`, `--refresh-only`, `--no-refresh`), as a user requests them: `oarlock` and kubectl against one `oarlock up`. */
import { deepEqual, doesNotMatch, equal, match, notEqual, rejects } from 'node:assert/strict'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { annotations, type RunSpec, type Stack, type StackSpec } from '../src/api/index.ts'
import { isConditionTrue } from '../src/kubernetes/object/index.ts'
import { useOarlock } from './support/oarlock-fixture.ts'
import { removeDirectory } from './support/oarlock-process.ts'
import { runProgram, skipWithoutTerraformEngine as skip, skipWithout, terraformEngine } from './support/run-program.ts'
import { isUpToDate } from './support/stacks.ts'

const outsideDirectory = mkdtempSync(join(tmpdir(), 'oarlock-outside-'))
/** A file that changes without the Stack. */
const outside = join(outsideDirectory, 'text')

/** Resources whose input is `text`, in a module with keys too. */
const source = (text: string) => ({
  inline: {
    files: {
      'main.tf': `
        resource "terraform_data" "a" { input = "${text}" }
        resource "terraform_data" "b" { input = "${text}" }
        module "m" {
          source   = "./m"
          for_each = toset(["x y"])
          text     = "${text}"
        }
        output "outside" { value = file("${outside}") }
        output "a_id" { value = terraform_data.a.id }
        output "b_id" { value = terraform_data.b.id }
        output "a" { value = terraform_data.a.output }
        output "b" { value = terraform_data.b.output }
        output "m" { value = module.m["x y"].text }`,
      'm/main.tf': `
        variable "text" {}
        resource "terraform_data" "c" { input = var.text }
        output "text" { value = terraform_data.c.output }`,
    },
  },
})

type Outputs = Record<'outside' | 'a_id' | 'b_id' | 'a' | 'b' | 'm', string>

describe('runs with options', { concurrency: 3 }, () => {
  const up = useOarlock({ args: ['--max-workers', '3'] })
  const { stacks, oarlock, succeeds } = up

  before(async () => {
    writeFileSync(outside, 'before')
  })
  after(async () => {
    removeDirectory(outsideDirectory)
  })

  const outputsOf = async (name: string) => outputsIn(await stacks.get(name))
  const outputsIn = ({ status }: Stack) => (status?.outputs ?? {}) as Outputs
  const lastRun = async (name: string): Promise<RunSpec> => (await stacks.runsOf(name)).at(-1)!.spec
  const create = async (name: string, more: Partial<StackSpec> = {}) =>
    await stacks.create(name, { engine: terraformEngine, source: source('one'), ...more })

  test('applies only the targets of a Stack in sync, and replaces only what is named', { skip }, async () => {
    await create('auto')
    await stacks.untilReady('auto')
    const first = await outputsOf('auto')

    const planned = await succeeds('plan', 'auto', '--target', 'terraform_data.a', '--replace', 'terraform_data.a')
    match(planned.stdout, /terraform_data\.a will be replaced, as requested/)
    const ready = await stacks.get('auto')
    equal(isConditionTrue(ready.status?.conditions, 'Drifted'), false, 'a Plan with options is no check of drift')

    const ran = await succeeds('run', 'auto', '--target', 'terraform_data.a', '--replace', 'terraform_data.a', '--wait')
    match(ran.stdout, /^stack\/auto targets applied; the rest of the Stack was not$/m)
    const second = await outputsOf('auto')
    notEqual(second.a_id, first.a_id)
    equal(second.b_id, first.b_id)
    deepEqual((await lastRun('auto')).options, { targets: ['terraform_data.a'], replace: ['terraform_data.a'] })
    const after = await stacks.get('auto')
    equal(after.status?.applied?.runName, ready.status?.applied?.runName, 'what is applied remains what it was')
    equal(isConditionTrue(after.status?.conditions, 'Ready'), true)

    match((await succeeds('describe', 'stack', 'auto')).stdout, /Apply --target terraform_data\.a --replace terraform_data\.a/)
    match((await succeeds('get', 'runs', '-o', 'wide')).stdout, /"targets":\["terraform_data\.a"\]/)
    match((await succeeds('logs', 'stack/auto')).stdout, /: Apply \(--target terraform_data\.a --replace terraform_data\.a\) of Stack/)

    const complete = await succeeds('run', 'auto', '--replace', 'module.m["x y"].terraform_data.c', '--wait')
    match(complete.stdout, /^stack\/auto applied$/m)
    notEqual((await stacks.get('auto')).status?.applied?.runName, after.status?.applied?.runName, 'a complete Run is recorded')
  })

  test('a plan with targets waits for its approval, which covers exactly it, and leaves the Stack out of date', { skip }, async () => {
    await create('manual', { approval: 'Manual' })
    const awaiting = (what: string) =>
      stacks.until('manual', what, stack => isUpToDate(stack) && isConditionTrue(stack.status?.conditions, 'AwaitingApproval'))
    await awaiting('the first plan')
    await succeeds('approve', 'manual', '--yes', '--wait')
    await stacks.patch('manual', { spec: { source: source('two') } })
    const pending = await awaiting('the complete plan')

    // Another plan awaits approval: that is no result of this Run.
    const unknown = await succeeds('run', 'manual', '--target', 'terraform_data.absent', '--wait')
    match(unknown.stdout, /^stack\/manual targets are up to date$/m)
    equal((await stacks.get('manual')).status?.plan?.runName, pending.status?.plan?.runName)

    const ran = await oarlock('run', 'manual', '--target', 'module.m["x y"]', '--no-refresh', '--wait')
    equal(ran.code, 9, ran.text)
    match(ran.stderr, /awaits approval: 0 to add, 1 to change, 0 to destroy/)
    deepEqual((await stacks.get('manual')).status?.plan?.options, { targets: ['module.m["x y"]'], refresh: false })
    match((await succeeds('describe', 'stack', 'manual')).stdout, /^Plan: .*\(with --target module\.m\["x y"\] --no-refresh, digest/m)

    const approved = await succeeds('approve', 'manual', '--yes', '--wait')
    match(approved.text, /it was made with --target module\.m\["x y"\] --no-refresh/)
    match(approved.text, /the rest of the Stack is not applied/)
    doesNotMatch(approved.text, /terraform_data\.b/)
    const rest = await stacks.until('manual', 'the plan of the rest', ({ status }) => status?.plan !== undefined && !status.plan.options)
    const texts = ({ a, b, m }: Outputs) => [a, b, m]
    deepEqual(texts(outputsIn(rest)), ['one', 'one', 'two'])
    deepEqual([rest.status?.plan?.change, isConditionTrue(rest.status?.conditions, 'Ready')], [2, false])
    await succeeds('approve', 'manual', '--yes', '--wait')
    await stacks.untilReady('manual')
    deepEqual(texts(await outputsOf('manual')), ['two', 'two', 'two'])
  })

  test('a refresh changes only the state, and waits for approval where plans do', { skip }, async () => {
    await create('fresh')
    await stacks.untilReady('fresh')
    const first = await outputsOf('fresh')
    writeFileSync(outside, 'after')
    const ran = await succeeds('run', 'fresh', '--refresh-only', '--wait')
    match(ran.stdout, /^stack\/fresh refreshed$/m)
    equal((await lastRun('fresh')).type, 'Refresh')
    const second = await outputsOf('fresh')
    deepEqual(second, { ...first, outside: 'after' })
    match((await succeeds('run', 'fresh', '--refresh-only', '--wait')).stdout, /refreshed: the state was up to date/)

    await stacks.patch('fresh', { spec: { approval: 'Manual', source: source('two') } })
    await stacks.until('fresh', 'a plan', stack => isUpToDate(stack) && stack.status?.plan !== undefined)
    writeFileSync(outside, 'last')
    const waits = await oarlock('run', 'fresh', '--refresh-only', '--wait')
    equal(waits.code, 9, waits.text)
    deepEqual(await outputsOf('fresh'), second, 'nothing is refreshed without approval')
    const approved = await succeeds('approve', 'fresh', '--yes', '--wait')
    match(approved.text, /it changes only the state, not the resources/)
    match(approved.stdout, /^stack\/fresh refreshed$/m)
    const third = await outputsOf('fresh')
    deepEqual(third, { ...first, outside: 'last' })
  })

  test('a request by annotation has the same options', { skip: skip || skipWithout('kubectl') }, async () => {
    await create('annotated')
    await stacks.untilReady('annotated')
    const first = await outputsOf('annotated')
    const kubectl = async (request: string) =>
      await runProgram('kubectl', ['annotate', 'stack', 'annotated', '--overwrite', `oarlock.dev/requested-run=${request}`], {
        env: { KUBECONFIG: up.kubeconfig },
      })
    const requested = await kubectl('apply:1 {"targets":["terraform_data.b"],"replace":["terraform_data.b"]}')
    equal(requested.code, 0, requested.text)
    await stacks.until('annotated', 'the Run', stack => outputsIn(stack).b_id !== first.b_id)
    equal((await outputsOf('annotated')).a_id, first.a_id)

    const invalid = await kubectl('apply:2 {"target":["terraform_data.b"]}')
    notEqual(invalid.code, 0, invalid.text)
    match(invalid.stderr, /unknown option "target": targets, replace and refresh are allowed/)
  })

  test('the options of a Run cannot be changed', { skip }, async () => {
    await create('fixed')
    await stacks.untilReady('fixed')
    await succeeds('run', 'fixed', '--target', 'terraform_data.a', '--wait')
    const run = (await stacks.runsOf('fixed')).at(-1)!
    const change = (options: object | null) =>
      stacks.runs.patch(run.metadata.name, { spec: { options } }, { type: 'merge', namespace: 'default' })
    await rejects(change({ targets: ['terraform_data.b'] }), /options is immutable/)
    await rejects(change(null), /options is immutable/)
  })

  test('rejects what cannot be planned before a Run is created', { skip }, async () => {
    await create('wrong')
    await stacks.create('files', { engine: 'command', command: { apply: ['true'] }, source: { inline: { files: { f: '' } } } })
    await stacks.untilReady('wrong')
    await stacks.untilReady('files')
    const rejected = async (code: number, message: RegExp, ...args: string[]) => {
      const result = await oarlock('run', ...args)
      equal(result.code, code, result.text)
      match(result.stderr, message)
    }
    await rejected(
      2,
      /targets has "a b": it must be an address such as aws_instance\.web\[0\] or module\.network/,
      'wrong',
      '--target',
      'a b',
    )
    await rejected(2, /replace has "module\.m"/, 'wrong', '--replace', 'module.m')
    await rejected(2, /--refresh-only cannot be combined with --replace or --no-refresh/, 'wrong', '--refresh-only', '--no-refresh')
    await rejected(4, /engine command does not support targets, replace and refresh/, 'files', '--target', 'a.b')
    await rejected(4, /engine command does not support/, 'files', '--refresh-only')
    const annotate = (name: string, value: string) =>
      stacks.patch(name, { metadata: { annotations: { [annotations.requestedRun]: value } } })
    await rejects(annotate('files', 'apply:1 {"refresh":false}'), /engine command does not support/)
    await rejects(annotate('wrong', `apply:1 ${JSON.stringify({ targets: Array(65).fill('a.b') })}`), /a list of 1 to 64 addresses/)
    await rejects(annotate('wrong', `apply:1 ${JSON.stringify({ targets: [`a.b["${'k'.repeat(600)}"]`] })}`), /longer than 512 characters/)
    deepEqual([(await stacks.runsOf('wrong')).length, (await stacks.runsOf('files')).length], [1, 1])
  })
})
