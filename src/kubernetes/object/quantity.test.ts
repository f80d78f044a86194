import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addQuantities, compareQuantities, formatQuantity, parseQuantity, quantityMillis, quantityValue } from './index.ts'

for (const [text, canonical, value] of [
  ['0', '0', 0],
  ['100m', '100m', 0.1],
  ['1500m', '1500m', 1.5],
  ['0.5', '500m', 0.5],
  ['+2', '2', 2],
  ['-1.5', '-1500m', -1.5],
  ['1Ki', '1Ki', 1_024],
  ['1.5Gi', '1536Mi', 1_610_612_736],
  ['0.5Ki', '512', 512],
  ['12e6', '12e6', 12_000_000],
  ['1E3', '1e3', 1_000],
  ['1E', '1E', 1e18],
  ['1000k', '1M', 1_000_000],
  ['.5', '500m', 0.5],
  ['5.', '5', 5],
  ['0.1n', '1n', 1e-9],
  ['9e99', '9223372036854775807e0', Number(2n ** 63n - 1n)],
] as const) {
  test(`formats the quantity ${text} as ${canonical}`, () => {
    const quantity = parseQuantity(text)
    if (!canonical.endsWith('e0')) assert.equal(formatQuantity(quantity), canonical)
    assert.equal(quantityValue(quantity), value)
    assert.equal(compareQuantities(quantity, parseQuantity(formatQuantity(quantity))), 0)
  })
}

for (const text of ['', '.', '1.2.3', '1 Gi', '1KI', '1ki', 'Ki', '--1', '0x1', '1e', '1'.repeat(65), 'NaN']) {
  test(`rejects the quantity ${JSON.stringify(text).slice(0, 20)}`, () =>
    assert.throws(() => parseQuantity(text), /quantities must match the regular expression/))
}

test('compares and adds quantities exactly', () => {
  const millis = fc.bigInt(-(10n ** 12n), 10n ** 12n)
  fc.assert(
    fc.property(millis, millis, (a, b) => {
      const [left, right] = [parseQuantity(`${a}m`), parseQuantity(`${b}m`)]
      assert.equal(Math.sign(compareQuantities(left, right)), a < b ? -1 : a > b ? 1 : 0)
      assert.equal(quantityMillis(addQuantities(left, right)), Number(a + b))
      assert.deepEqual(parseQuantity(formatQuantity(left)).nanos, left.nanos)
    }),
  )
})
