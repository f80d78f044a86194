import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openApiV2Protobuf } from './openapi-v2-protobuf.ts'

// The output of gnostic's Go library for the same JSON (openapi_v2.ParseDocument, then proto.Marshal). The whole document of a server had
// the same length and was an equal message too, when this was written.
test('encodes a document as gnostic does', () => {
  const document = {
    swagger: '2.0',
    info: { title: 'T', version: 'v1' },
    paths: {
      '/a': {
        get: {
          operationId: 'id',
          consumes: ['*/*'],
          parameters: [
            { name: 'body', in: 'body', required: true, schema: { $ref: '#/definitions/A' } },
            { name: 'q', in: 'query', type: 'integer', uniqueItems: true },
          ],
          responses: { 200: { description: 'OK', schema: { $ref: '#/definitions/A' } } },
          'x-kubernetes-action': 'list',
        },
        parameters: [{ name: 'name', in: 'path', required: true, type: 'string' }],
      },
    },
    definitions: {
      A: {
        type: 'object',
        required: ['n'],
        properties: {
          n: { type: 'integer', format: 'int32', minimum: 1, maximum: 2.5, default: 3 },
          m: { type: 'object', additionalProperties: { type: 'string' } },
          o: { type: 'object', additionalProperties: true },
          l: { type: 'array', items: { type: 'string', enum: ['a', 'b'] }, minItems: 300 },
        },
        'x-kubernetes-group-version-kind': [{ group: '', kind: 'A', version: 'v1' }],
      },
    },
  }
  assert.equal(openApiV2Protobuf(document).toString('hex'), expected)
})

const expected = [
  '0a03322e3012070a01541202763142bf0112bc010a022f6112b5011294012a0269643a032a2f2a42250a230a211204626f64791a04626f647920012a',
  '110a0f232f646566696e6974696f6e732f41421c0a1a12181a16120571756572792201713207696e7465676572a001014a240a220a03323030121b0a',
  '190a024f4b12130a110a0f232f646566696e6974696f6e732f416a1e0a13782d6b756265726e657465732d616374696f6e120712056c6973740a4a1c',
  '0a1a12182216080112047061746822046e616d652a06737472696e674a85020a82020a014112fc019a01016eb201080a066f626a656374ca019d010a',
  '300a016e122b1205696e7433322a041202330a39000000000000044049000000000000f03fb201090a07696e74656765720a200a016d121baa010d0a',
  '0bb201080a06737472696e67b201080a066f626a6563740a150a016f1210aa01021001b201080a066f626a6563740a300a016c122b78ac02b201070a',
  '056172726179ba011b0a19a201041202610aa201041202620ab201080a06737472696e67fa01490a1f782d6b756265726e657465732d67726f75702d',
  '76657273696f6e2d6b696e64122612242d2067726f75703a2022220a20206b696e643a20410a202076657273696f6e3a2076310a',
].join('')
