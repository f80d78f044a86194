import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineContext } from '../engine.ts'
import { executionOptions, operationOptions } from './arguments.ts'

const urn = 'urn:pulumi:dev::shop::a:b:C::c'
const contextOf = (pulumi: NonNullable<EngineContext['spec']['pulumi']>) => ({
  spec: { engine: 'pulumi' as const, pulumi },
  sourceRoot: '/run/work',
})

for (const { name, intent, pulumi = {}, run, want } of [
  { name: 'nothing is set', intent: 'apply', want: [] },
  {
    name: 'an update with everything',
    intent: 'apply',
    pulumi: { refresh: true, runProgram: true, targets: [urn], targetDependents: true, replace: [urn], policyPacks: ['policies'] },
    want: [
      `--target=${urn}`,
      '--target-dependents',
      `--replace=${urn}`,
      '--refresh=true',
      '--run-program',
      '--policy-pack=/run/work/policies',
    ],
  },
  { name: 'the program does not run twice for an update', intent: 'apply', pulumi: { runProgram: true }, want: [] },
  {
    name: 'a destruction replaces nothing',
    intent: 'destroy',
    pulumi: { replace: [urn], runProgram: true, policyPacks: ['p'] },
    want: ['--run-program'],
  },
  {
    name: 'a destruction is restricted by targets of the Run, not by those of the Stack',
    intent: 'destroy',
    pulumi: { targets: [urn], targetDependents: true },
    want: [],
  },
  {
    name: 'a destruction of targets',
    intent: 'destroy',
    pulumi: { targets: [`${urn}1`], targetDependents: true },
    run: { targets: [urn] },
    want: [`--target=${urn}`, '--target-dependents'],
  },
  {
    name: 'the Stack replaces what exists, and the Run what it names',
    intent: 'apply',
    pulumi: { replace: [urn, `${urn}-new`] },
    run: { replace: [urn, `${urn}-other`] },
    want: [`--replace=${urn}`, `--replace=${urn}-other`],
  },
  { name: 'a refresh has targets', intent: 'refresh', pulumi: { targets: [urn] }, want: [`--target=${urn}`] },
  { name: 'a refresh refreshes once', intent: 'refresh', pulumi: { refresh: true }, want: [] },
  {
    name: 'targets of the Run replace those of the Stack',
    intent: 'apply',
    pulumi: { targets: [`${urn}1`] },
    run: { targets: [urn] },
    want: [`--target=${urn}`],
  },
  { name: 'a Run without refresh', intent: 'apply', pulumi: { refresh: true }, run: { refresh: false }, want: ['--refresh=false'] },
] as const) {
  test(`options: ${name}`, () =>
    deepEqual(operationOptions(contextOf({ ...pulumi } as never), { intent, run: run as never, isInState: each => each === urn }), want))
}

test('options: the number of operations applies to previews too, and errors only to updates', () => {
  const context = contextOf({ parallel: 3, continueOnError: true })
  deepEqual(executionOptions(context, true, 'apply'), ['--parallel=3'])
  deepEqual(executionOptions(context, false, 'destroy'), ['--parallel=3', '--continue-on-error'])
  deepEqual(executionOptions(context, false, 'refresh'), ['--parallel=3'])
})
