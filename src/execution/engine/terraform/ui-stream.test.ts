import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { describeDiagnostics } from '../diagnostics.ts'
import { createUiProgress } from './ui-progress.ts'
import { isConfigurationError, isFollowUpError, isProvisionerOutput, type ResourceDiagnostic, readUiLine } from './ui-stream.ts'

// The fixtures are output of Terraform 1.11.4, recorded by fixtures/record.sh.
const fixture = (name: string) =>
  readFileSync(new URL(`fixtures/${name}.jsonl`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
const variables = { variablesFile: 'vars.tfvars.json', variableOfLine: (line: number) => ['size', 'password'][line - 2] }
const readAll = (name: string) => fixture(name).map(line => readUiLine(line, variables))
const diagnosticsOf = (name: string): ResourceDiagnostic[] =>
  readAll(name).flatMap(({ event }) => (event.kind === 'diagnostic' ? [{ diagnostic: event.diagnostic, address: event.address }] : []))

for (const { name, message, isConfiguration } of [
  {
    name: 'plan-validation',
    message:
      'Invalid value for variable: size must be below 10. This was checked by the validation rule at main.tf:3,3-13. (variable size of the Stack)',
    isConfiguration: true,
  },
  {
    name: 'plan-missing',
    message:
      'No value for required variable: The root module input variable "size" is not set, and has no default value. Set it in spec.variables or spec.variablesFrom, or give it a default. (main.tf line 1); 1 more error, see the log',
    isConfiguration: true,
  },
  {
    name: 'plan-argument',
    message: 'Unsupported argument: An argument named "inptu" is not expected here. Did you mean "input"? (bad.tf line 2)',
    isConfiguration: true,
  },
  {
    name: 'init-syntax',
    message:
      'Unclosed configuration block: There is no closing brace for this block before the end of the file. This may be caused by incorrect brace nesting elsewhere in this file. (bad.tf line 1); 2 more errors, see the log',
    isConfiguration: true,
  },
  {
    name: 'apply-stale',
    message:
      'Saved plan is stale: The given plan file can no longer be applied because the state was changed by another operation after the plan was created.',
    isConfiguration: false,
  },
  {
    name: 'apply-failed',
    message:
      "local-exec provisioner error: Error running command 'echo on stderr >&2; exit 3': exit status 3. Output: on stderr (main.tf line 2)",
    isConfiguration: false,
  },
]) {
  test(`${name}: the error message, and whether it is a configuration error`, () => {
    const causes = diagnosticsOf(name).filter(each => !isFollowUpError(each))
    const diagnostics = causes.map(({ diagnostic }) => diagnostic)
    assert.equal(describeDiagnostics(diagnostics, ''), message)
    assert.equal(causes.every(isConfigurationError), isConfiguration)
  })
}

for (const { name, summary, detail, file, address, want } of [
  { name: 'a module that cannot be downloaded', summary: 'Failed to download module', detail: 'x', file: 'main.tf', want: false },
  {
    name: 'an unreachable registry',
    summary: 'Invalid provider registry host',
    detail: 'dial tcp: lookup r: no such host',
    want: false,
  },
  { name: 'a precondition', summary: 'Resource precondition failed', detail: '', file: 'main.tf', want: false },
  { name: 'a resource', summary: 'creating EC2 Instance', detail: '', file: 'main.tf', address: 'aws_instance.a', want: false },
  { name: 'an invalid reference', summary: 'Reference to undeclared resource', detail: '', file: 'main.tf', want: true },
]) {
  test(`${name} is ${want ? '' : 'not '}a configuration error`, () => {
    assert.equal(isConfigurationError({ diagnostic: { severity: 'error', summary, detail, ...(file && { file }) }, address }), want)
  })
}

test('an apply reports 3 of 3 steps and the current resource', () => {
  const progress = createUiProgress()
  const steps = readAll('apply-create').flatMap(({ event }) => progress.add(event) ?? [])
  assert.deepEqual([steps[0]?.done, steps[0]?.total], [0, 3])
  assert.deepEqual(steps.at(-1), { done: 3, total: 3, creating: [] })
  assert.ok(steps.some(({ current }) => current?.startsWith('terraform_data.part[')))
  assert.ok(steps.every(({ done, total }) => done <= total))
})

test('a creation is in progress from its start until it has completed or failed', () => {
  const part = (index: number) => `terraform_data.part[${index}]`
  const progress = createUiProgress()
  const inProgress = readAll('apply-create').flatMap(({ event }) => (progress.add(event) ? [progress.creating.length] : []))
  assert.ok(inProgress.includes(3) && inProgress.at(-1) === 0, inProgress.join())
  const interrupted = createUiProgress()
  for (const { event } of readAll('apply-create')) {
    if (event.kind === 'finished' && event.address.startsWith('terraform_data.part')) break
    interrupted.add(event)
  }
  assert.deepEqual([...interrupted.creating].sort(), [part(0), part(1)])
  const failed = createUiProgress()
  for (const { event } of readAll('apply-failed')) failed.add(event)
  assert.deepEqual(failed.creating, [])
})

test('an update and a deletion are no creations', () => {
  const progress = createUiProgress()
  for (const action of ['update', 'delete', 'create']) {
    const hook = { resource: { addr: `a.${action}` }, action }
    progress.add(readUiLine(JSON.stringify({ type: 'apply_start', hook })).event)
  }
  assert.deepEqual(progress.creating, ['a.create'])
})

test('the log has the text of every event and the source snippet of an error', () => {
  const log = readAll('plan-argument').flatMap(line => line.log)
  assert.deepEqual(log.slice(-4), [
    'Error: Unsupported argument',
    '  on bad.tf line 2, in resource "terraform_data" "z"',
    '    2:   inptu = 1',
    '  An argument named "inptu" is not expected here. Did you mean "input"?',
  ])
})

test('invariant 9: no line shows the content of the variables file', () => {
  for (const name of ['plan-create', 'apply-create', 'plan-validation', 'apply-stale']) {
    assert.ok(!readAll(name).some(({ log }) => log.join('\n').includes('hunter')), name)
  }
})

test('a line that is not JSON is log text', () => {
  assert.deepEqual(readUiLine('panic: oh no'), { event: { kind: 'other' }, log: ['panic: oh no'] })
  assert.deepEqual(readUiLine('{broken'), { event: { kind: 'other' }, log: ['{broken'] })
  assert.deepEqual(readUiLine(''), { event: { kind: 'other' }, log: [] })
})

for (const [line, want] of [
  ['{"@message":"null_resource.a: (local-exec): noise","hook":{},"type":"provision_progress"}', true],
  ['{"@message":"null_resource.a: (local-exec): noise","hook":{},"type":"provision_progress"}\n', true],
  ['{"hook":{},"type":"provision_progress"}\n{"hook":{},"type":"provision_progress"}\n', false],
  ['{"@message":"\\"type\\":\\"provision_progress\\"}","type":"apply_progress"}', false],
  ['{"type":"diagnostic"}', false],
  ['', false],
] as const)
  test(`${JSON.stringify(line)} is ${want ? '' : 'not '}the output of a provisioner`, () =>
    assert.equal(isProvisionerOutput(Buffer.from(line)), want))
