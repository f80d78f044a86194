import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { UsageScale } from './decayed-usage.ts'

const halfLifeMs = 900_000

test('usage decays to a half after one half-life, and to a quarter after two', () => {
  const scale = new UsageScale(halfLifeMs)
  const account = scale.scaled(60_000, 5_000_000)
  assert.equal(Math.round(scale.usageMs(account, 5_000_000)), 60_000)
  assert.equal(Math.round(scale.usageMs(account, 5_000_000 + halfLifeMs)), 30_000)
  assert.equal(Math.round(scale.usageMs(account, 5_000_000 + 2 * halfLifeMs)), 15_000)
})

test('property: equals the sum of the definition, also over years with a moved base', () => {
  const charges = fc.array(fc.record({ costMs: fc.nat(7_200_000), afterMs: fc.nat(100 * halfLifeMs) }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(charges, list => {
      const scale = new UsageScale(halfLifeMs)
      let account = 0
      let nowMs = 1_780_000_000_000
      const known: { costMs: number; atMs: number }[] = []
      for (const { costMs, afterMs } of list) {
        nowMs += afterMs
        account *= scale.rebase(nowMs) ?? 1
        account += scale.scaled(costMs, nowMs)
        known.push({ costMs, atMs: nowMs })
        const expected = known.reduce((sum, one) => sum + one.costMs * 2 ** (-(nowMs - one.atMs) / halfLifeMs), 0)
        const got = scale.usageMs(account, nowMs)
        assert.ok(Math.abs(got - expected) <= 1e-6 * Math.max(1, expected), `${got} is not ${expected}`)
      }
    }),
  )
})

test('rejects a half-life that is not a positive number', () => {
  assert.throws(() => new UsageScale(0), /halfLifeMs must be a number > 0, got 0/)
})
