import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  conflict,
  findCondition,
  formatDuration,
  invalid,
  isConditionTrue,
  isReason,
  notFound,
  objectKey,
  parseApiVersion,
  parseDuration,
  parseKey,
  rfc3339,
  rfc3339Micro,
  StatusError,
  setCondition,
} from './index.ts'

test('parses object keys and apiVersions back into their parts', () => {
  for (const metadata of [{ name: 'a' }, { namespace: 'n', name: 'a' }]) {
    assert.deepEqual({ namespace: undefined, ...metadata }, parseKey(objectKey({ metadata })))
  }
  assert.deepEqual(parseApiVersion('v1'), { group: '', version: 'v1' })
  assert.deepEqual(parseApiVersion('apps/v1'), { group: 'apps', version: 'v1' })
})

test('the transition time changes with the status only, and conditions keep their position', () => {
  const ready = { type: 'Ready', status: 'False', reason: 'A', message: '' } as const
  const first = setCondition([{ ...ready, type: 'Other', lastTransitionTime: 'x' }], ready, 0)
  const second = setCondition(first, { ...ready, reason: 'B' }, 5_000)
  assert.equal(findCondition(second, 'Ready')?.lastTransitionTime, '1970-01-01T00:00:00Z')
  assert.equal(findCondition(second, 'Ready')?.reason, 'B')
  const third = setCondition(second, { ...ready, status: 'True' }, 5_999)
  assert.equal(findCondition(third, 'Ready')?.lastTransitionTime, '1970-01-01T00:00:05Z')
  assert.deepEqual(
    third.map(condition => condition.type),
    ['Other', 'Ready'],
  )
  assert.equal(isConditionTrue(third, 'Ready'), true)
  assert.equal(isConditionTrue(undefined, 'Ready'), false)
})

test('formats times as Kubernetes does', () => {
  assert.equal(rfc3339(1_234), '1970-01-01T00:00:01Z')
  assert.equal(rfc3339Micro(1_234), '1970-01-01T00:00:01.234000Z')
})

for (const [text, ms] of [
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['1.5d', 129_600_000],
  ['250ms', 250],
] as const) {
  test(`parses the duration ${text}`, () => assert.equal(parseDuration(text), ms))
}
for (const text of ['', '1', 's', '-1s', '1 s', '1h30']) {
  test(`rejects the duration "${text}"`, () => assert.throws(() => parseDuration(text), RangeError))
}
for (const [ms, text] of [
  [-5, '0ms'],
  [250, '250ms'],
  [192_000, '3m12s'],
  [3_605_000, '1h'],
  [93_600_000, '1d2h'],
] as const) {
  test(`formats ${ms} ms as ${text}`, () => assert.equal(formatDuration(ms), text))
}

test('a StatusError survives serialization', () => {
  const resource = { group: 'oarlock.dev', plural: 'stacks', kind: 'Stack' }
  for (const error of [
    notFound(resource, 'a'),
    conflict(resource, 'a', 'changed'),
    invalid(resource, 'a', [{ reason: 'FieldValueRequired', message: 'Required value', field: 'spec' }]),
  ]) {
    const back = StatusError.fromStatus(JSON.parse(JSON.stringify(error.toStatus())))
    assert.deepEqual([back.message, back.reason, back.code], [error.message, error.reason, error.code])
    assert.deepEqual(JSON.parse(JSON.stringify(back.details)), JSON.parse(JSON.stringify(error.details)))
  }
  assert.equal(notFound(resource, 'a').message, 'stacks.oarlock.dev "a" not found')
  assert.equal(isReason(notFound(resource, 'a'), 'NotFound', 'Gone'), true)
  assert.equal(isReason(new Error('NotFound'), 'NotFound'), false)
})
