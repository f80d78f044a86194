import { deepEqual, match } from 'node:assert/strict'
import { test } from 'node:test'
import type { Resource, UntypedDeployment } from './deployment.ts'
import { parseJournalEntry } from './journal-entry.ts'
import { recoverEntries } from './recover-entries.ts'

const urn = (name: string) => `urn:pulumi:dev::app::a:b:C::${name}`
const resource = (name: string, more: Partial<Resource> = {}): Resource => ({ urn: urn(name), id: `id-${name}`, ...more })
const stateOf = (...resources: Resource[]): UntypedDeployment => ({ version: 3, deployment: { resources } })
const recover = (state: UntypedDeployment | undefined, ...entries: object[]) =>
  recoverEntries(
    state,
    entries.map((entry, index) => parseJournalEntry({ version: 1, sequenceID: index + 1, operationID: 1, ...entry })),
  )

test('a resource that the state lacks is added, without references to what the state lacks too', () => {
  const late = resource('late', { dependencies: [urn('a'), urn('gone')], parent: urn('gone') })
  const { state, added, pending, skipped } = recover(
    stateOf(resource('a')),
    { kind: 0, operation: { type: 'creating', resource: late } },
    { kind: 1, state: late },
  )
  deepEqual(state.deployment.resources, [resource('a'), resource('late', { dependencies: [urn('a')] })])
  deepEqual([added, pending, skipped], [[urn('late')], [], []])
})

test('a state of its own is created if there is none', () => {
  deepEqual(recover(undefined, { kind: 1, state: resource('a') }).state, stateOf(resource('a')))
})

test('outputs that arrived with a resource are its outputs', () => {
  const { state } = recover(
    stateOf(),
    { kind: 1, state: resource('a') },
    { kind: 4, operationID: 2, removeNew: 1, state: resource('a', { outputs: { x: 1 } }) },
  )
  deepEqual(state.deployment.resources, [resource('a', { outputs: { x: 1 } })])
})

test('a resource that the state has is not changed, and one with another id is reported', () => {
  const current = stateOf(resource('a', { inputs: { new: true } }), resource('b'))
  const { state, added, skipped } = recover(current, { kind: 1, state: resource('a') }, { kind: 1, state: resource('b', { id: 'other' }) })
  deepEqual([state, added], [current, []])
  deepEqual(skipped, [`${urn('b')}: the state has it with id id-b, the entry with id other`])
})

test('a creation that has begun is pending, unless the state has the resource', () => {
  const creating = (name: string) => ({ type: 'creating', resource: resource(name) })
  const begin = (operationID: number, name: string) => ({ kind: 0, operationID, operation: creating(name) })
  const { state, pending } = recover(stateOf(resource('a')), begin(1, 'a'), begin(2, 'b'), begin(3, 'c'), { kind: 2, operationID: 3 })
  deepEqual([state.deployment.pending_operations, pending], [[creating('b')], [urn('b')]])
})

test('what cannot be recovered is reported', () => {
  const { skipped } = recover(stateOf(), { kind: 1, removeOld: 0 }, { kind: 42 })
  match(skipped.join('\n'), /^entry 1: a resource was deleted, which the entry does not name\nentry 2: unknown entry kind 42$/)
})
