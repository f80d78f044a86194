import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { countResources, deploymentOf, readOutputs } from './results.ts'

const signature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' }
const resources = [
  {
    urn: 'urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev',
    type: 'pulumi:pulumi:Stack',
    outputs: {
      name: 'shop',
      key: { ...signature, ciphertext: Buffer.from('one').toString('base64') },
      nested: { list: [{ ...signature, ciphertext: Buffer.from('two').toString('base64') }, 1] },
      again: { ...signature, ciphertext: Buffer.from('one').toString('base64') },
      plain: { ...signature, plaintext: '{"a":1}' },
      unknown: ['04da6b54-80e4-46f7-96ec-b56ff0331ba9'],
    },
  },
  { urn: 'urn:pulumi:dev::shop::pulumi:providers:aws::default', type: 'pulumi:providers:aws' },
  { urn: 'urn:pulumi:dev::shop::aws:s3/bucket:Bucket::b', type: 'aws:s3/bucket:Bucket' },
  { urn: 'urn:pulumi:dev::shop::aws:s3/bucket:Bucket::b', type: 'aws:s3/bucket:Bucket', delete: true },
]

test('outputs are decrypted in one request, one that contains a secret is sensitive, and one that is not known is left out', async () => {
  const requests: string[][] = []
  const outputs = await readOutputs({ resources }, async values => {
    requests.push(values.map(value => Buffer.from(value).toString()))
    return values.map(value => Buffer.from(JSON.stringify(`decrypted ${Buffer.from(value)}`)))
  })
  deepEqual(outputs, {
    name: { value: 'shop', sensitive: false },
    key: { value: 'decrypted one', sensitive: true },
    nested: { value: { list: ['decrypted two', 1] }, sensitive: true },
    again: { value: 'decrypted one', sensitive: true },
    plain: { value: { a: 1 }, sensitive: true },
  })
  deepEqual(requests, [['one', 'two']])
})

test('a state without a stack has no outputs and asks for nothing', async () => {
  const failing = () => Promise.reject(new Error('nothing is to be decrypted'))
  deepEqual(await readOutputs(deploymentOf(undefined), failing), {})
  deepEqual(await readOutputs(deploymentOf(Buffer.from('{"version":3,"deployment":null}')), failing), {})
})

test('resources are counted without the stack, its providers and what is to be deleted', () => {
  equal(countResources({ resources }), 1)
})
