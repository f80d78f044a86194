import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { PulumiEvent, PulumiResourceStep } from '../../pulumi-backend/index.ts'
import { ObservedEvents } from './observed-events.ts'

const urnOf = (name: string) => `urn:pulumi:dev::app::a:b:C::${name}`
const step = (name: string, op: string, more: Partial<PulumiResourceStep> = {}): PulumiEvent => ({
  ...{ sequence: 1, timeMs: 0, kind: 'resourceDone', isPreview: true },
  step: {
    ...{ urn: urnOf(name), type: 'a:b:C', op, replaceKeys: [], changedKeys: [], detailedDiff: {}, isLogical: true, isProtected: false },
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

test('what is kept of a command is bounded, and what is missing is known', () => {
  const events = new ObservedEvents()
  const detailedDiff = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${index}`.padEnd(1_000, 'x'), 'update']))
  for (let index = 0; index < 100; index++) events.add(step(`r${index}`, 'update', { detailedDiff }))
  equal(events.isTruncated, true)
  equal(events.changes().length, 16)
  for (let index = 0; index < 1_000; index++) events.add({ sequence: index, timeMs: 0, kind: 'error', message: 'x' })
  equal(events.diagnostics.length, 200)
})
