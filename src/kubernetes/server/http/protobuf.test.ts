import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { StatusError } from '../../object/index.ts'
import { readProtobuf } from './protobuf.ts'

test('decodes what kubectl create namespace sends', () => {
  // Recorded from kubectl 1.32.
  const body = Buffer.from(
    '6b3873000a0f0a02763112094e616d657370616365121b0a130a03666f6f12001a0022002a00320038004200' + '12001a020a001a002200',
    'hex',
  )
  assert.deepEqual(readProtobuf(body), {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'foo' },
    spec: {},
    status: {},
  })
})

test('rejects every other body with a 4xx', () => {
  const start = Buffer.from('6b3873000a0f0a02763112094e616d65737061636512', 'hex')
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), fc.boolean(), (bytes, withStart) => {
      try {
        readProtobuf(Buffer.concat([withStart ? start : Buffer.alloc(0), bytes]))
      } catch (error) {
        assert.ok(error instanceof StatusError && error.code < 500, String(error))
      }
    }),
    { numRuns: 2_000 },
  )
})
