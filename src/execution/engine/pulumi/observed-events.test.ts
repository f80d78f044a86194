import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { PulumiEvent, PulumiResourceStep } from '../../pulumi-backend/index.ts'
import { ObservedEvents } from './observed-events.ts'

const urnOf = (name: string) => `urn:pulumi:dev::app::a:b:C::${name}`
const step = (name: string, op: string, more: Partial<PulumiResourceStep> = {}): PulumiEvent => ({
  ...{ sequence: 1, timeMs: 0, kind: 'resourceDone', isPreview: true },
  step: {
    ...{ urn: urnOf(name), type: 'a:b:C', op, replaceKeys: [], changedKeys: [], detailedDiff: {}, isLogical: true, isProtected: false },
    isStateChange: false,
    ...more,
  },
})

test('the resources that change are listed with their steps and what differs, and others are not kept', () => {
  const events = new ObservedEvents(2)
  equal(events.add(step('same', 'same')), undefined)
  events.add(step('b', 'create-replacement', { replaceKeys: ['name'] }))
  deepEqual(events.add(step('b', 'replace', { detailedDiff: { name: 'update-replace' }, replaceKeys: ['name'] })), {
    ...{ done: 1, total: 2, current: 'replace a:b:C b' },
  })
  events.add(step('a', 'update', { detailedDiff: { size: 'update' } }))
  deepEqual(events.changes(), [
    { urn: urnOf('a'), type: 'a:b:C', actions: ['update'], document: { properties: { size: 'update' }, replaces: [] } },
    {
      ...{ urn: urnOf('b'), type: 'a:b:C', actions: ['create-replacement', 'replace'] },
      document: { properties: { name: 'update-replace' }, replaces: ['name'] },
    },
  ])
  equal(events.isTruncated, false)
})

test('a resource that is refreshed changes only if its state does, whatever its step is called', () => {
  const refresh = (name: string, op: string, isStateChange: boolean) => {
    const events = new ObservedEvents(1)
    events.add({ ...step(name, 'refresh'), kind: 'resourceStarted' } as PulumiEvent)
    events.add(step(name, op, { isStateChange }))
    // The program follows.
    events.add({ ...step(name, 'same'), kind: 'resourceStarted' } as PulumiEvent)
    events.add(step(name, 'same', { isStateChange: true }))
    return events.changes().map(({ actions }) => actions.join(' '))
  }
  deepEqual(refresh('a', 'refresh', false), [])
  deepEqual(refresh('a', 'refresh', true), ['refresh'])
  deepEqual(refresh('a', 'same', false), [])
  deepEqual(refresh('a', 'same', true), ['refresh'])
  deepEqual(refresh('a', 'update', false), ['update'])
  deepEqual(refresh('a', 'delete', true), ['delete'])
})

test('what is kept of a command is bounded, and what is missing is known', () => {
  const events = new ObservedEvents()
  const detailedDiff = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${index}`.padEnd(1_000, 'x'), 'update']))
  for (let index = 0; index < 100; index++) events.add(step(`r${index}`, 'update', { detailedDiff }))
  equal(events.isTruncated, true)
  equal(events.changes().length, 16)
  for (let index = 0; index < 1_000; index++) events.add({ sequence: index, timeMs: 0, kind: 'error', message: 'x' })
  equal(events.diagnostics.length, 200)
})

const urn = (name: string, type = 'a:b:C') => `urn:pulumi:dev::shop::${type}::${name}`
const base = { sequence: 1, timeMs: 0 }
const changeOf = (name: string, op: string, type?: string) =>
  ({
    urn: urn(name, type),
    type: type ?? 'a:b:C',
    op,
    replaceKeys: [],
    changedKeys: [],
    detailedDiff: { size: 'update' },
  }) as unknown as PulumiResourceStep
const started = (each: PulumiResourceStep): PulumiEvent => ({ ...base, kind: 'resourceStarted', step: each, isPreview: false })
const done = (each: PulumiResourceStep): PulumiEvent => ({ ...base, kind: 'resourceDone', step: each, isPreview: false })
const error = (message: string, of?: string): PulumiEvent => ({
  ...{ ...base, kind: 'diagnostic', severity: 'error', message, isEphemeral: false },
  ...(of !== undefined && { urn: urn(of) }),
})
const policy = (enforcementLevel: string): PulumiEvent => ({
  ...{
    ...base,
    kind: 'policy',
    urn: urn('b'),
    message: 'buckets must be private\nset acl',
    policy: 'no-public',
    pack: 'aws',
    packVersion: '1',
  },
  enforcementLevel,
})
const observe = (...events: PulumiEvent[]) => {
  const observed = new ObservedEvents(2)
  return { observed, progress: events.map(event => observed.add(event)) }
}

test('progress counts what a user has declared, when it is done', () => {
  const { progress } = observe(
    ...[started(changeOf('s', 'create', 'pulumi:pulumi:Stack')), started(changeOf('a', 'create')), done(changeOf('a', 'create'))],
    ...[done(changeOf('same', 'same')), done(changeOf('b', 'update')), done(changeOf('c', 'delete'))],
  )
  deepEqual(progress, [
    ...[undefined, { done: 0, total: 2, current: 'create a:b:C a' }, { done: 1, total: 2, current: 'create a:b:C a' }],
    ...[undefined, { done: 2, total: 2, current: 'update a:b:C b' }, { done: 3, total: 3, current: 'delete a:b:C c' }],
  ])
})

test('errors name the resource and have no label', () => {
  const { observed } = observe(error('error: it broke\n', 'b'), error('the program failed'))
  deepEqual(observed.diagnostics, [
    { severity: 'error', summary: 'a:b:C b', detail: 'it broke' },
    { severity: 'error', summary: 'pulumi', detail: 'the program failed' },
  ])
})

test('errors that follow from others are left out, unless there are no others', () => {
  const follows = [
    error(`error: expected resource operations for ${urn('c')} but none were seen`, 'c'),
    error('error: an unhandled error occurred: waiting for RPCs: resource b [a:b:C] failed to register'),
  ]
  deepEqual(
    observe(...follows, error('error: it broke', 'b')).observed.diagnostics.map(({ detail }) => detail),
    ['it broke'],
  )
  deepEqual(observe(...follows).observed.diagnostics.length, 2)
})

test('a mandatory policy that is violated is an error with the policy, the resource and the message, an advisory one a warning', () => {
  deepEqual(observe(policy('mandatory'), policy('advisory'), policy('remediate')).observed.diagnostics, [
    { severity: 'error', summary: 'policy no-public of pack aws is violated by a:b:C b', detail: 'buckets must be private set acl' },
    { severity: 'warning', summary: 'policy no-public of pack aws is violated by a:b:C b', detail: 'buckets must be private set acl' },
  ])
})

test('only a mandatory policy stops a Run', () => {
  deepEqual(observe(policy('mandatory')).observed.violatesPolicy, true)
  deepEqual(observe(policy('advisory'), error('error: it broke')).observed.violatesPolicy, false)
})

test('200 errors and 200 warnings are kept: warnings do not displace an error', () => {
  const warnings = Array.from({ length: 250 }, () => policy('advisory'))
  const errors = Array.from({ length: 250 }, () => error('error: it broke'))
  const { diagnostics } = observe(...warnings, ...errors).observed
  equal(diagnostics.filter(({ severity }) => severity === 'warning').length, 200)
  equal(diagnostics.filter(({ severity }) => severity === 'error').length, 200)
})
