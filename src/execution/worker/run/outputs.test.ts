import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Run } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { stringsIn } from './inputs.ts'
import { markSecretOutputs, type Outputs, type OutputsSecret, outputsData, outputsDigest, publicOutputs, writeOutputs } from './outputs.ts'

const outputs: Outputs = { url: { value: 'http://x', sensitive: false }, key: { value: { a: ['s3cret', 7, null, true] }, sensitive: true } }

test('stores each output as JSON text under its name', () => {
  assert.equal(Buffer.from(outputsData(outputs).key!, 'base64').toString(), '{"a":["s3cret",7,null,true]}')
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

test('writes the Secret only if it does not hold the outputs already', async () => {
  const run = { metadata: { name: 'web-1', namespace: 'shop' }, spec: { stackRef: { name: 'web', uid: 'u1' } } } as Run
  const calls: string[] = []
  let stored: OutputsSecret
  const write = async (verb: string, secret: object) => {
    calls.push(verb)
    stored = secret as OutputsSecret
  }
  const secrets = { create: (secret: object) => write('create', secret), update: (secret: object) => write('update', secret) }
  const client = { resource: () => secrets } as unknown as Client
  const outputsOf = (zone: string, sensitive: boolean) => ({ zone: { value: zone, sensitive } })
  await writeOutputs(client, run, outputsOf('a', false), undefined)
  await writeOutputs(client, run, outputsOf('a', false), stored)
  assert.deepEqual(calls, ['create'])
  await writeOutputs(client, run, outputsOf('b', false), stored)
  await writeOutputs(client, run, outputsOf('b', true), stored)
  assert.deepEqual(calls, ['create', 'update', 'update'])
})
