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
  deepEqual(skipped, [
    `${urn('a')}: the state has it with other content than an operation of the journal has left`,
    `${urn('b')}: the state has it with id id-b, the entry with id other`,
  ])
  deepEqual(recover(stateOf(resource('a')), { kind: 1, state: resource('a') }).skipped, [])
})

test('a creation that has begun is pending, unless the state has the resource', () => {
  const creating = (name: string) => ({ type: 'creating', resource: resource(name) })
  const begin = (operationID: number, name: string) => ({ kind: 0, operationID, operation: creating(name) })
  const { state, pending } = recover(stateOf(resource('a')), begin(1, 'a'), begin(2, 'b'), begin(3, 'c'), { kind: 2, operationID: 3 })
  deepEqual([state.deployment.pending_operations, pending], [[creating('b')], [urn('b')]])
})

const secret = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270', ciphertext: 'djE6' }
const manager = (type: string, state: object) => ({ kind: 6, secretsProvider: { type, state } })

test('the secrets provider of the update is that of a state which has none, so that what is added can be decrypted', () => {
  const added = resource('a', { outputs: { password: secret } })
  const service = (url: string) => manager('service', { url, owner: 'apps' })
  const { state, skipped } = recover(undefined, service('http://127.0.0.1:1'), { kind: 1, state: added })
  deepEqual(state.deployment, { resources: [added], secrets_providers: service('http://127.0.0.1:1').secretsProvider })
  const current = { version: 3, deployment: { resources: [], secrets_providers: service('http://127.0.0.1:2').secretsProvider } }
  const kept = recover(current, service('http://127.0.0.1:1'), { kind: 1, state: added })
  deepEqual([skipped, kept.skipped, kept.state.deployment.secrets_providers], [[], [], current.deployment.secrets_providers])
})

test('secrets that the provider of the state cannot decrypt are reported', () => {
  const current = { version: 3, deployment: { resources: [], secrets_providers: { type: 'passphrase', state: { salt: 'x' } } } }
  const { skipped, added } = recover(
    current,
    manager('service', {}),
    { kind: 1, state: resource('a', { outputs: { password: secret } }) },
    { kind: 1, operationID: 2, state: resource('b') },
  )
  deepEqual(added, [urn('a'), urn('b')])
  deepEqual(skipped, [`${urn('a')}: its secrets were encrypted by the provider service, and the state has the provider passphrase`])
})

test('what a refresh has found is reported, and is used for a resource that was added', () => {
  const drifted = (name: string) => resource(name, { outputs: { drifted: true } })
  const { state, skipped } = recover(
    stateOf(resource('a'), resource('c')),
    { kind: 3, removeOld: 0, state: drifted('a') },
    { kind: 1, operationID: 2, state: resource('b') },
    { kind: 3, operationID: 3, removeNew: 2, state: drifted('b') },
    { kind: 3, operationID: 4, removeOld: 1, state: resource('c') },
    { kind: 3, operationID: 5, removeOld: 1 },
  )
  deepEqual(state.deployment.resources, [resource('a'), resource('c'), drifted('b')])
  match(
    skipped.join('\n'),
    /^urn:.*::a: what a refresh has found, .*\nentry 5: a refresh has found that a resource does not exist any more, which the entry does not name$/,
  )
})

test('operations that had begun and changes of the whole state are reported, and extensions are kept', () => {
  const { state, skipped } = recover(
    stateOf(resource('a')),
    { kind: 5, newSnapshot: { resources: [] } },
    { kind: 0, operation: { type: 'updating', resource: resource('a') } },
    { kind: 8, extensionRef: 'ref', extension: { name: 'x' } },
    { kind: 9, snippets: [] },
  )
  deepEqual(state.deployment.extensions, { ref: { name: 'x' } })
  deepEqual(skipped, [
    'entry 1: the state was replaced before the update',
    'entry 4: snippets were changed',
    `${urn('a')}: an operation (updating) had begun, and its result is not known`,
  ])
})

test('what cannot be recovered is reported', () => {
  const { skipped } = recover(stateOf(), { kind: 1, removeOld: 0 }, { kind: 42 })
  match(skipped.join('\n'), /^entry 1: a resource was deleted, which the entry does not name\nentry 2: unknown entry kind 42$/)
})
