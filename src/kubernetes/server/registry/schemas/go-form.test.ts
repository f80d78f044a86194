import { equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { isReason } from '../../../object/index.ts'
import { goForm, type TypeSchema } from './index.ts'

const lease = { kind: 'Lease', version: 'v1' }
const time: TypeSchema = { type: 'string', format: 'date-time' }
const microTime: TypeSchema = { type: 'string', form: 'micro-time' }

for (const { value, seconds, micros } of [
  { value: '2026-06-01T10:00:00Z', seconds: '2026-06-01T10:00:00Z', micros: '2026-06-01T10:00:00.000000Z' },
  { value: '2026-06-01T10:00:59.5Z', seconds: '2026-06-01T10:00:59Z', micros: '2026-06-01T10:00:59.500000Z' },
  { value: '2026-06-01T10:00:00.123456789Z', seconds: '2026-06-01T10:00:00Z', micros: '2026-06-01T10:00:00.123456Z' },
  { value: '2026-06-01T10:00:00+02:30', seconds: '2026-06-01T07:30:00Z', micros: '2026-06-01T07:30:00.000000Z' },
  { value: '2026-06-01T10:00:00-24:60', seconds: '2026-06-02T11:00:00Z', micros: '2026-06-02T11:00:00.000000Z' },
]) {
  test(`${value} is converted to UTC and the precision of its type`, () => {
    equal(goForm(time, value, lease), seconds)
    equal(goForm(microTime, value, lease), micros)
  })
}

for (const value of [
  '',
  '2026-06-01T10:00:60Z',
  '2026-06-01T10:00:60.5Z',
  '2026-06-01T10:00:60.500000Z',
  '2026-06-01T24:00:00Z',
  '2026-02-30T10:00:00Z',
  '2026-06-01T10:00:00+25:00',
  '2026-06-01T10:00:00+99:99',
  '2026-06-01t10:00:00z',
  '2026-06-01 10:00:00Z',
  '9999-12-31T23:59:59-01:00',
]) {
  test(`${JSON.stringify(value)} is rejected as a bad request`, () => {
    for (const schema of [time, microTime])
      throws(
        () => goForm(schema, value, lease),
        error => isReason(error, 'BadRequest'),
      )
  })
}
