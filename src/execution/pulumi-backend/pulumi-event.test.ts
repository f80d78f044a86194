import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isJournalTested, parseCliVersion } from './cli-version.ts'
import { type PulumiEvent, parsePulumiEvent } from './pulumi-event.ts'

const urn = 'urn:pulumi:dev::web::random:index/randomPet:RandomPet::pet'
const metadata = {
  ...{
    op: 'update',
    urn,
    type: 'random:index/randomPet:RandomPet',
    provider: 'p',
    keys: ['length'],
    diffs: ['length', 'prefix'],
    logical: true,
  },
  old: { id: 'old-pet', protect: true, inputs: { password: 'hunter2' }, outputs: {} },
  new: { id: '', inputs: {}, outputs: { password: 'hunter2' } },
  detailedDiff: { length: { diffKind: 'update-replace', inputDiff: true }, bad: 5 },
}

test('events of resources have the step without inputs and outputs', () => {
  const event = parsePulumiEvent({ sequence: 4, timestamp: 1_700_000_000, resourcePreEvent: { metadata, planning: true } })
  deepEqual(event, {
    ...{ sequence: 4, timeMs: 1_700_000_000_000, kind: 'resourceStarted', isPreview: true },
    step: {
      ...{ urn, type: 'random:index/randomPet:RandomPet', op: 'update', id: 'old-pet', provider: 'p', replaceKeys: ['length'] },
      ...{ changedKeys: ['length', 'prefix'], detailedDiff: { length: 'update-replace' }, isLogical: true, isProtected: true },
      isStateChange: false,
    },
  })
  equal(parsePulumiEvent({ resOutputsEvent: { metadata } })?.kind, 'resourceDone')
  equal(parsePulumiEvent({ resOpFailedEvent: { metadata, status: 1, steps: 2 } })?.kind, 'resourceFailed')
  ok(!JSON.stringify(event).includes('hunter2'))
})

test('a resource that was refreshed has changed if its inputs or outputs have', () => {
  const isChange = (op: string, before: unknown, after: unknown) => {
    const event = parsePulumiEvent({ resOutputsEvent: { metadata: { urn, op, old: before, new: after } } })
    return event?.kind === 'resourceDone' && event.step.isStateChange
  }
  const state = { inputs: { size: 1 }, outputs: { status: 'a' } }
  for (const op of ['refresh', 'same']) {
    equal(isChange(op, state, structuredClone(state)), false)
    equal(isChange(op, state, { ...state, outputs: { status: 'b' } }), true)
    equal(isChange(op, state, { ...state, inputs: {} }), true)
    equal(isChange(op, state, null), true)
    equal(isChange(op, null, state), false)
  }
  equal(isChange('update', state, { outputs: {} }), false)
})

test('texts have no colour codes and are limited', () => {
  const message = `<{%bright red%}>error:<{%reset%}> ${'x'.repeat(100_000)}`
  const event = parsePulumiEvent({ diagnosticEvent: { message, prefix: '<{%reset%}>p ', severity: 'error', urn, ephemeral: true } })
  ok(event?.kind === 'diagnostic')
  equal(event.message.slice(0, 15), 'p error: xxxxxx')
  ok(event.message.length <= 16_384)
  deepEqual([event.severity, event.urn, event.isEphemeral], ['error', urn, true])
})

test('summaries, policies, output, errors and downloads are typed', () => {
  const parse = (event: Record<string, unknown>) => parsePulumiEvent({ sequence: 1, timestamp: 1, ...event })
  const base = { sequence: 1, timeMs: 1_000 }
  const summary = {
    ...{ maybeCorrupt: false, durationSeconds: 12, resourceChanges: { create: 3, same: 1, bad: -1 } },
    ...{ PolicyPacks: { pack: 'v1' }, isPreview: true, result: 'succeeded' },
  }
  deepEqual(parse({ summaryEvent: summary }), {
    ...{ ...base, kind: 'summary', changes: { create: 3, same: 1 }, durationSeconds: 12, isPreview: true, maybeCorrupt: false },
    ...{ result: 'succeeded', policyPacks: { pack: 'v1' } },
  })
  const policy = { policyName: 'no-public', policyPackName: 'aws', policyPackVersion: '1', enforcementLevel: 'mandatory' }
  const expected = { ...base, kind: 'policy', urn, policy: 'no-public', pack: 'aws', packVersion: '1' }
  deepEqual(parse({ policyEvent: { ...policy, resourceUrn: urn, message: 'public' } }), {
    ...expected,
    message: 'public',
    enforcementLevel: 'mandatory',
  })
  deepEqual(parse({ policyRemediationEvent: { ...policy, resourceUrn: urn, before: { password: 'hunter2' } } }), {
    ...{ ...expected, message: 'the resource was remediated', enforcementLevel: 'remediate' },
  })
  deepEqual(parse({ stdoutEvent: { message: 'hello', color: 'never' } }), { ...base, kind: 'output', message: 'hello' })
  deepEqual(parse({ errorEvent: { error: 'failed' } }), { ...base, kind: 'error', message: 'failed' })
  deepEqual(parse({ progressEvent: { type: 'plugin-download', id: 'random', message: 'm', received: 5, total: 10, done: false } }), {
    ...{ ...base, kind: 'progress', operation: 'plugin-download', id: 'random', message: 'm', completed: 5, total: 10, isDone: false },
  })
  for (const name of ['preludeEvent', 'cancelEvent', 'startDebuggingEvent', 'policyLoadEvent', 'futureEvent'])
    equal(parse({ [name]: { config: { password: 'hunter2' } } }), undefined)
})

test('property: any JSON is parsed without an exception, to an event of limited size', () => {
  const names = [
    'resourcePreEvent',
    'resOutputsEvent',
    'resOpFailedEvent',
    'diagnosticEvent',
    'summaryEvent',
    'policyEvent',
    'progressEvent',
  ]
  const field = fc.constantFrom('metadata', 'urn', 'op', 'message', 'resourceChanges', 'keys', 'detailedDiff', 'severity', '__proto__')
  const value = fc.dictionary(field, fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.jsonValue())))
  fc.assert(
    fc.property(fc.constantFrom(...names), value, fc.jsonValue(), (name, each, other) => {
      parsePulumiEvent(other)
      const event: PulumiEvent | undefined = parsePulumiEvent({ sequence: other, timestamp: other, [name]: each })
      if (event) ok(Number.isFinite(event.sequence) && Number.isFinite(event.timeMs))
    }),
    { numRuns: 2_000 },
  )
})

test('versions of the CLI are read from its User-Agent', () => {
  equal(parseCliVersion('pulumi-cli/1 (v3.260.0; linux; cmd=up)'), '3.260.0')
  equal(parseCliVersion('pulumi-cli/1 (3.225.1-alpha.5+dirty; windows)'), '3.225.1-alpha.5+dirty')
  for (const other of [undefined, '', 'pulumi-cli/1 (; linux)', 'pulumi-cli/2 (v3.1.0; linux)', 'Mozilla (v3.1.0; linux)'])
    equal(parseCliVersion(other), undefined)
  equal(isJournalTested('3.260.5', ['3.260']), true)
  equal(isJournalTested('3.2600.5', ['3.260']), false)
  equal(isJournalTested(undefined, ['3.260']), false)
})
