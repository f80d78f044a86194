import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hasStringFormat } from './string-format.ts'

const pad = (value: number, length = 2) => String(value).padStart(length, '0')

test('date and date-time accept exactly the days that a Date has', () => {
  for (const year of [0, 4, 100, 1900, 1999, 2000, 2023, 2024, 2100, 2400, 9999]) {
    for (let month = 0; month <= 13; month++) {
      for (let day = 0; day <= 32; day++) {
        const text = `${pad(year, 4)}-${pad(month)}-${pad(day)}`
        const date = new Date(`${text}T00:00:00Z`)
        const isDay = !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
        assert.equal(hasStringFormat(text, 'date'), isDay, text)
        assert.equal(hasStringFormat(`${text}T01:02:03Z`, 'date-time'), isDay, text)
      }
    }
  }
})

test('date-time rejects hours, minutes and seconds out of range, also a leap second', () => {
  for (const [time, isTime] of [
    ['00:00:00', true],
    ['23:59:59', true],
    ['23:59:59.999', true],
    ['24:00:00', false],
    ['10:60:00', false],
    ['23:59:60', false],
    ['23:59:60.5', false],
  ] as const)
    assert.equal(hasStringFormat(`2016-12-31T${time}Z`, 'date-time'), isTime, time)
})
