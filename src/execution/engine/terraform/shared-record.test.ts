import { deepEqual, equal, notEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { WantedProvider } from './download-provider.ts'
import { emptyRecord, hasFailedOften, selectionName, validSelection, withFailure, withSelection } from './shared-record.ts'

const address = 'registry.example/acme/widget'
const free: WantedProvider = { address, constraint: '~> 1.0' }
const locked = (hashes: string[]): WantedProvider => ({ address, constraint: '', lock: { version: '1.0.0', hashes } })
const selected = { version: '1.0.0', checksum: 'h1:a' }

test('a selection by a constraint is valid for a minute, one by a lock file without limit', () => {
  for (const { wanted, ageMs, isValid } of [
    { wanted: free, ageMs: 0, isValid: true },
    { wanted: free, ageMs: 59_999, isValid: true },
    { wanted: free, ageMs: 60_000, isValid: false },
    { wanted: free, ageMs: -1, isValid: false },
    { wanted: locked(['zh:1']), ageMs: 1e9, isValid: true },
  ])
    equal(validSelection(withSelection(emptyRecord(), wanted, selected, 1e9), wanted, 1e9 + ageMs) !== undefined, isValid, `${ageMs}`)
})

test('a selection is of one constraint, or of one version with the same checksums in any order', () => {
  const record = withSelection(withSelection(emptyRecord(), free, selected, 0), locked(['zh:1', 'zh:2']), selected, 0)
  equal(validSelection(record, { address, constraint: '~> 1.1' }, 0), undefined)
  equal(validSelection(record, locked(['zh:1']), 0), undefined)
  equal(validSelection(record, locked(['zh:2', 'zh:1']), 0)?.checksum, 'h1:a')
  notEqual(selectionName(locked(['zh:1'])), selectionName({ address, constraint: '= 1.0.0' }))
})

test('of two packages of one version, one of a lock file does not replace the other', () => {
  const other = { version: '1.0.0', checksum: 'h1:b' }
  const record = withSelection(emptyRecord(), free, selected, 0)
  deepEqual(withSelection(record, locked(['zh:1']), other, 1).packages, { '1.0.0': 'h1:a' })
  deepEqual(withSelection(record, free, other, 1).packages, { '1.0.0': 'h1:b' }, 'the engine did not have the first one')
  deepEqual(withSelection(emptyRecord(), free, { version: '1.0.0', checksum: undefined }, 0).packages, {})
})

test('two failures within 30 s end the attempts for the same request only, until a success', () => {
  const twice = withFailure(withFailure(emptyRecord(), free, 0), free, 20_000)
  equal(hasFailedOften(withFailure(emptyRecord(), free, 0), free, 0), false)
  equal(hasFailedOften(twice, free, 20_000), true)
  equal(hasFailedOften(twice, locked(['zh:1']), 20_000), false)
  equal(hasFailedOften(twice, free, 30_000), false)
  equal(hasFailedOften(withSelection(twice, free, selected, 20_000), free, 20_000), false)
})

test('a record has a limited number of entries, the newest', () => {
  let record = emptyRecord()
  for (let index = 0; index < 300; index++) {
    record = withFailure(record, { address, constraint: `f${index}` }, index)
    record = withSelection(record, { address, constraint: `= ${index}` }, { version: `1.0.${index}`, checksum: 'h1:a' }, index)
  }
  deepEqual(
    [record.packages, record.selections, record.failures].map(each => Object.keys(each).length),
    [100, 100, 100],
  )
  equal(record.packages['1.0.299'], 'h1:a')
})
