import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringsIn } from './inputs.ts'
import { markSecretOutputs, type Outputs, outputsData, outputsDigest, publicOutputs } from './outputs.ts'

const outputs: Outputs = { url: { value: 'http://x', sensitive: false }, key: { value: { a: ['s3cret', 7, null, true] }, sensitive: true } }

test('stores each output as JSON text under its name', () => {
  assert.equal(Buffer.from(outputsData(outputs).data.key!, 'base64').toString(), '{"a":["s3cret",7,null,true]}')
  assert.deepEqual([outputsData(outputs).sensitive, outputsData(outputs, 'shop/dev').pulumiStack], [['key'], 'shop/dev'])
  assert.deepEqual(publicOutputs(outputs), { url: 'http://x' })
})

test('marks an output that contains a known secret as sensitive, even if its engine did not (invariant 9)', () => {
  const mask = (text: string) => text.replaceAll('s3cret', '***')
  const original: Outputs = {
    plain: { value: 'x', sensitive: false },
    dsn: { value: { at: ['db://a:s3cret@b'] }, sensitive: false },
    ...outputs,
  }
  const { outputs: result, marked } = markSecretOutputs(original, mask)
  assert.deepEqual(marked, ['dsn'])
  assert.deepEqual(publicOutputs(result), { plain: 'x', url: 'http://x' })
  assert.equal(outputsDigest(result), outputsDigest(original))
})

test('finds every string of a nested secret value', () => {
  assert.deepEqual(stringsIn(outputs.key!.value), ['s3cret', '7'])
})

for (const [name, bad, message] of [
  ['an output name that a Secret cannot have', { 'a/b': { value: 1, sensitive: false } }, /output name "a\/b" must be 1 to 253 letters/],
  [
    'more bytes than a Secret holds',
    { a: { value: 'x'.repeat(800_000), sensitive: false } },
    /have \d+ bytes in base64, at most 900000 are allowed/,
  ],
] as [string, Outputs, RegExp][]) {
  test(`rejects ${name}`, () => assert.throws(() => outputsData(bad), message))
}

test('the digest ignores the order of keys and covers every value, including sensitive ones', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), values => {
      const of = (entries: [string, unknown][]) =>
        outputsDigest(Object.fromEntries(entries.map(([name, value]) => [name, { value: value as never, sensitive: true }])))
      const entries = Object.entries(values)
      assert.equal(of(entries), of(entries.toReversed()))
      for (const [name] of entries)
        assert.notEqual(of(entries), of(entries.map(entry => (entry[0] === name ? [name, ['another', entry[1]]] : entry))))
    }),
  )
})
