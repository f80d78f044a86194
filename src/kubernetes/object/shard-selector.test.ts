import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { formatShardSelector, parseShardSelector, shardHash, shardHashHigh, shardTest, shardTestOfHash } from './shard-selector.ts'

const range = (start: string, end: string, field = 'uid') => `shardRange(object.metadata.${field}, '${start}', '${end}')`
const bottom = '0x0000000000000000'
const middle = '0x8000000000000000'
const top = '0x10000000000000000'

test('the hash is 64-bit FNV-1a', () => {
  // The published test vectors, a uid, and random text, compared with the definition below.
  const vectors: [string, string][] = [
    ['', 'cbf29ce484222325'],
    ['a', 'af63dc4c8601ec8c'],
    ['b', 'af63df4c8601f1a5'],
    ['foobar', '85944171f73967e8'],
    ['aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee', fnv('aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee')],
  ]
  for (const [text, expected] of vectors) assert.equal(shardHash(text), expected, text)
  fc.assert(fc.property(fc.string({ unit: 'binary' }), text => assert.equal(shardHash(text), fnv(text))))
})

/** The definition, without optimizations. */
function fnv(text: string): string {
  let hash = 0xcbf29ce484222325n
  for (const byte of new TextEncoder().encode(text)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn
  return hash.toString(16).padStart(16, '0')
}

test('formats a parsed selector as Kubernetes does', () => {
  for (const [text, formatted] of [
    [range(bottom, middle)],
    [range(bottom, top, 'namespace')],
    [`${range(bottom, middle)} || ${range(middle, top)}`],
    [` shardRange( object . metadata.uid,"${bottom}" ,'${top}')  `, range(bottom, top)],
    [`(${range(bottom, middle)}||(${range(middle, top)}))`, `${range(bottom, middle)} || ${range(middle, top)}`],
  ] as [string, string?][]) {
    assert.equal(formatShardSelector(parseShardSelector(text)), formatted ?? text)
  }
})

test('rejects an invalid selector and states what is allowed', () => {
  for (const [text, message] of [
    ['', /empty shard selector is not allowed/],
    [range('0x0', middle), /hexStart must be a 0x-prefixed 16-digit hex value, got "0x0" \(did you mean "0x0000000000000000"\?\)/],
    [range(middle, middle), /start 0x8000000000000000 must be less than end 0x8000000000000000/],
    [range(top, top), /must be less than end/],
    [range(bottom, '0x10000000000000001'), /17-digit hex value must be '0x10000000000000000'/],
    [range(bottom, '0x000000000000000G'), /invalid hex character "G"/],
    [range(bottom, middle, 'labels'), /unsupported field path "object\.metadata\.labels"/],
    [`${range(bottom, middle)} || ${range(bottom, middle, 'namespace')}`, /must use the same field/],
    [`${range(bottom, middle)} && ${range(bottom, middle)}`, /unsupported function "_&&_"/],
    ["object.metadata.uid > '0x0'", /kind 7/],
    ['true', /kind 4/],
    ["shardRange(hash(0), '0x0', '0x8')", /got expression kind 1/],
    ["shardRange(object.metadata.uid, hex(0), '0x8')", /hexStart must be a string literal \(e\.g\. '0xff'\), got expression kind 1/],
    ['shardRange(object.metadata.uid,', /CEL parse error/],
    ['shardRange(object.metadata.uid ~', /CEL parse error/],
    ['('.repeat(1_000), /nest deeper/],
    [`shardRange(${'f('.repeat(1_000)}`, /nest deeper/],
    [Array(2_000).fill(range(bottom, middle)).join('||'), /at most 1024 ranges/],
  ] as const) {
    assert.throws(() => parseShardSelector(text), { code: 400, message }, text.slice(0, 80))
  }
})

test('ranges that partition the hash space assign every value to exactly one shard', () => {
  const hex = (value: bigint) => `0x${value.toString(16).padStart(16, '0')}`
  const cuts = fc.uniqueArray(fc.bigInt({ min: 1n, max: 2n ** 64n - 1n }), { maxLength: 8 })
  fc.assert(
    fc.property(cuts, fc.string(), (inner, value) => {
      const bounds = [0n, ...inner.toSorted((a, b) => (a < b ? -1 : 1)), 2n ** 64n]
      const shards = bounds.slice(1).map((end, index) => shardTest(parseShardSelector(range(hex(bounds[index]!), hex(end)))))
      const hash = BigInt(`0x${fnv(value)}`)
      const expected = bounds.findLastIndex(start => start <= hash)
      assert.deepEqual(
        shards.map(isInside => isInside(value)),
        shards.map((_, index) => index === expected),
      )
    }),
  )
})

test('the test with a stored upper half decides as the one that hashes, also at the boundaries', () => {
  const hash = (value: string) => BigInt(`0x${shardHash(value)}`)
  const hex = (bound: bigint) => `0x${bound.toString(16).padStart(16, '0')}`
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), fc.integer({ min: -1, max: 1 }), (uid, other, shift) => {
      const start = hash(uid) + BigInt(shift)
      if (start < 0n || start >= 2n ** 64n) return
      const selector = parseShardSelector(`${range(hex(start), top)} || ${range(bottom, hex(hash(other) + 1n))}`)
      for (const value of [uid, other]) assert.equal(shardTestOfHash(selector)(shardHashHigh(value), value), shardTest(selector)(value))
    }),
  )
})
