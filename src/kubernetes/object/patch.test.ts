import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { applyJsonPatch, applyMergePatch, cloneJson, type Json, maxPatchOperations, StatusError } from './index.ts'

for (const [name, document, patch, want] of [
  ['add a field', { a: 1 }, [{ op: 'add', path: '/b', value: 2 }], { a: 1, b: 2 }],
  ['add over a field', { a: 1 }, [{ op: 'add', path: '/a', value: 2 }], { a: 2 }],
  ['insert', { a: [1, 3] }, [{ op: 'add', path: '/a/1', value: 2 }], { a: [1, 2, 3] }],
  ['append', { a: [1] }, [{ op: 'add', path: '/a/-', value: 2 }], { a: [1, 2] }],
  ['remove', { a: { b: 1, c: 2 } }, [{ op: 'remove', path: '/a/b' }], { a: { c: 2 } }],
  ['remove an item', [1, 2, 3], [{ op: 'remove', path: '/1' }], [1, 3]],
  ['replace', { a: 1 }, [{ op: 'replace', path: '/a', value: null }], { a: null }],
  ['replace of an absent field', {}, [{ op: 'replace', path: '/a', value: 1 }], { a: 1 }],
  ['replace all', { a: 1 }, [{ op: 'replace', path: '', value: 5 }], 5],
  ['move', { a: { b: 1 } }, [{ op: 'move', from: '/a/b', path: '/c' }], { a: {}, c: 1 }],
  [
    'copy is deep',
    { a: { b: 1 } },
    [
      { op: 'copy', from: '/a', path: '/c' },
      { op: 'add', path: '/c/b', value: 2 },
    ],
    { a: { b: 1 }, c: { b: 2 } },
  ],
  [
    'remove after a test',
    { a: [1] },
    [
      { op: 'test', path: '/a', value: [1] },
      { op: 'remove', path: '/a' },
    ],
    {},
  ],
  [
    'escapes',
    { 'a/b': 1, 'm~n': 2, '~1': 3 },
    [
      { op: 'remove', path: '/a~1b' },
      { op: 'remove', path: '/m~0n' },
      { op: 'remove', path: '/~01' },
    ],
    {},
  ],
  ['empty key', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
] as const) {
  test(`applies a JSON patch: ${name}`, () => assert.deepEqual(applyJsonPatch(document as never, patch), want))
}

for (const [name, document, patch, reason, message] of [
  ['not an array', {}, { op: 'add' }, 'BadRequest', /array of operations, got object/],
  ['unknown op', {}, [{ op: 'toString', path: '/a' }], 'BadRequest', /unexpected kind "toString", allowed are add, remove/],
  ['no value', {}, [{ op: 'add', path: '/a' }], 'BadRequest', /operation 0 \(add\) needs a value/],
  ['no path', {}, [{ op: 'remove' }], 'BadRequest', /needs path, a JSON pointer/],
  ['relative path', {}, [{ op: 'remove', path: 'a' }], 'BadRequest', /path "a" must start with "\/"/],
  ['missing path', {}, [{ op: 'remove', path: '/a' }], 'Invalid', /remove operation does not apply: doc is missing path: \/a/],
  ['missing parent', {}, [{ op: 'add', path: '/a/b', value: 1 }], 'Invalid', /doc is missing path: \/a/],
  ['replace below an absent field', {}, [{ op: 'replace', path: '/a/b', value: 1 }], 'Invalid', /missing path: \/a:/],
  ['replace after the end of a list', { a: [1] }, [{ op: 'replace', path: '/a/1', value: 1 }], 'Invalid', /index 1 of a list of 1/],
  ['inherited name', {}, [{ op: 'replace', path: '/constructor/prototype', value: 1 }], 'Invalid', /missing path/],
  ['__proto__ as parent', {}, [{ op: 'add', path: '/__proto__/admin', value: 1 }], 'Invalid', /missing path/],
  ['failed test', { a: 1 }, [{ op: 'test', path: '/a', value: 2 }], 'Invalid', /testing value \/a failed/],
  ['index past the end', [1], [{ op: 'add', path: '/2', value: 1 }], 'Invalid', /index 2 of a list of 1 items/],
  ['index with a leading zero', [1, 2], [{ op: 'remove', path: '/01' }], 'Invalid', /index 01/],
  ['move into itself', { a: { b: 1 } }, [{ op: 'move', from: '/a', path: '/a/b/c' }], 'Invalid', /cannot move into itself/],
  ['whole document', {}, [{ op: 'remove', path: '' }], 'Invalid', /cannot be removed/],
] as const) {
  test(`rejects a JSON patch: ${name}`, () => {
    assert.throws(
      () => applyJsonPatch(document as never, patch),
      (error: unknown) => error instanceof StatusError && error.reason === reason && message.test(error.message),
    )
  })
}

test('limits the number of operations and the size that copies add', () => {
  const many = Array.from({ length: maxPatchOperations + 1 }, () => ({ op: 'test', path: '', value: {} }))
  assert.throws(() => applyJsonPatch({}, many), { code: 413 })
  const doubling = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '', path: `/a${index}` }))
  assert.throws(() => applyJsonPatch({ a: 1 }, doubling), /copy operations add/)
})

const json = fc.jsonValue({ maxDepth: 3 }).map(value => JSON.parse(JSON.stringify(value)) as Json)
const object = fc
  .dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), json, { maxKeys: 4 })
  .map(value => JSON.parse(JSON.stringify(value)) as Json)

test('a JSON patch of the difference of two documents turns one into the other, and changes neither argument', () => {
  const differ = (from: Json, to: Json, path: string): unknown[] => {
    if (typeof from !== 'object' || typeof to !== 'object' || from === null || to === null || Array.isArray(from) || Array.isArray(to)) {
      return [{ op: 'replace', path, value: to }]
    }
    const at = (key: string) => `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    return [
      ...Object.keys(from)
        .filter(key => !Object.hasOwn(to, key))
        .map(key => ({ op: 'remove', path: at(key) })),
      ...Object.keys(to).flatMap(key =>
        Object.hasOwn(from, key) ? differ(from[key]!, to[key]!, at(key)) : [{ op: 'add', path: at(key), value: to[key] }],
      ),
    ]
  }
  fc.assert(
    fc.property(object, object, (from, to) => {
      const before = JSON.stringify(from)
      const result = applyJsonPatch(from, differ(from, to, ''))
      assert.deepEqual(result, to)
      assert.equal(JSON.stringify(from), before)
    }),
  )
})

test('a merge patch agrees with the pseudocode of RFC 7386', () => {
  const naive = (target: Json, patch: Json): Json => {
    if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
    const result = new Map<string, Json>(
      typeof target === 'object' && target !== null && !Array.isArray(target) ? Object.entries(target) : [],
    )
    for (const [key, value] of Object.entries(patch)) {
      if (value === null) result.delete(key)
      else result.set(key, naive(result.get(key) ?? null, value))
    }
    return Object.fromEntries(result)
  }
  fc.assert(
    fc.property(object, object, (document, patch) => {
      const before = cloneJson(document)
      assert.deepEqual(applyMergePatch(document, patch), naive(document, patch))
      assert.deepEqual(document, before)
    }),
  )
})

test('a merge patch cannot change a prototype', () => {
  const result = applyMergePatch({}, JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}')) as Record<
    string,
    unknown
  >
  assert.equal(result.admin, undefined)
  assert.equal(({} as Record<string, unknown>).x, undefined)
  assert.equal(JSON.stringify(result), '{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}')
})
