import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { stringsIn } from './inputs.ts'
import { markSecretOutputs, type Outputs, outputsData, outputsDigest, publicOutputs } from './outputs.ts'

const outputs: Outputs = { url: { value: 'http://x', sensitive: false }, key: { value: { a: ['s3cret', 7, null, true] }, sensitive: true } }

test('each output is JSON text under its name', () => {
  assert.equal(Buffer.from(outputsData(outputs).key!, 'base64').toString(), '{"a":["s3cret",7,null,true]}')
  assert.deepEqual(publicOutputs(outputs), { url: 'http://x' })
})

test('an output that holds a known secret becomes sensitive, whatever its engine says of it (invariant 9)', () => {
  const mask = (text: string) => text.replaceAll('s3cret', '***')
  const given: Outputs = {
    plain: { value: 'x', sensitive: false },
    dsn: { value: { at: ['db://a:s3cret@b'] }, sensitive: false },
    ...outputs,
  }
  const { outputs: marked, hidden } = markSecretOutputs(given, mask)
  assert.deepEqual(hidden, ['dsn'])
  assert.deepEqual(publicOutputs(marked), { plain: 'x', url: 'http://x' })
  assert.equal(outputsDigest(marked), outputsDigest(given))
})

test('every text in a secret value is masked, however deep', () => {
  assert.deepEqual(stringsIn(outputs.key!.value), ['s3cret', '7'])
})

for (const [name, bad, says] of [
  ['a name that a Secret cannot have', { 'a/b': { value: 1, sensitive: false } }, /output name "a\/b" must be 1 to 253 letters/],
  ['too much', { a: { value: 'x'.repeat(800_000), sensitive: false } }, /have \d+ bytes \(base64\), allowed are 900000/],
] as [string, Outputs, RegExp][]) {
  test(`${name} is refused`, () => assert.throws(() => outputsData(bad), says))
}

test('the digest does not depend on the order of keys, and sees every value, secret ones too', () => {
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
