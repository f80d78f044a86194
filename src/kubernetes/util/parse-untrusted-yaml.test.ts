import { deepEqual, equal, notEqual, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { cpuMs } from '../../../test/support/cpu-ms.ts'
import { parseUntrustedDocuments, parseUntrustedYaml, YamlError } from './parse-untrusted-yaml.ts'

const repeat = (count: number, line: (index: number) => string) => Array.from({ length: count }, (_, index) => line(index)).join('')
/** Each level has `width` aliases of the level before. */
const nested = (levels: number, width: number, level: (aliases: string) => string) =>
  `l0: &l0 {x: 1}\n${repeat(levels, index => `l${index + 1}: &l${index + 1} ${level(Array(width).fill(`*l${index}`).join(','))}\n`)}`

for (const { name, text, want } of [
  {
    name: 'a key that is a map',
    text: 'spec:\n  ? {a: b}\n  : c\n',
    want: /^a key must be a string, not a map, a list or an alias at line 2, column 5$/,
  },
  { name: 'a key that is a list', text: '[a]: b', want: /^a key must be a string/ },
  { name: 'a key that is an alias', text: 'a: &a {b: c}\n*a : d\n', want: /^a key must be a string.* at line 2, column 1$/ },
  { name: 'a key without text', text: '? \n: a', want: /^a key must not be empty/ },
  { name: 'a key that is a map in a list of pairs', text: 'a: !!pairs\n- {? {b: c} : d}\n', want: /^a key must be a string/ },
  {
    name: 'a duplicate of a key with another notation',
    text: '1: a\n"1": b\n',
    want: /^duplicate key "1" in a mapping at line 2, column 1$/,
  },
  { name: 'an alias of its own collection', text: 'a: &a [*a]', want: /^an alias must follow its anchor at line 1, column 8$/ },
  { name: 'an unknown alias', text: 'a: *hunter2', want: /^an alias must follow its anchor/ },
  { name: 'a merge of a string', text: '<<: a', want: /^only maps can be merged/ },
  { name: 'lists that expand exponentially', text: nested(9, 9, aliases => `[${aliases}]`), want: /^aliases expand to too many values/ },
  {
    name: 'merges that expand exponentially',
    text: nested(9, 9, aliases => `{<<: [${aliases}], a: [${aliases}]}`),
    want: /^aliases expand/,
  },
  { name: 'a long string with many aliases', text: `a: &a ${'x'.repeat(2_000)}\nb: [${'*a,'.repeat(200)}]`, want: /^aliases expand/ },
  {
    name: 'lists below 1,000 lists',
    text: `${'['.repeat(1_002)}${']'.repeat(1_002)}`,
    want: /^nests (deeper than 1000 levels|too deeply)/,
  },
]) {
  test(`rejects ${name}`, () =>
    throws(
      () => parseUntrustedYaml(text),
      error => error instanceof YamlError && want.test(error.message),
    ))
}

test('an error quotes nothing of the text', () => {
  for (const text of ['a: hunter2: hunter2', 'a: "hunter2', 'hunter2: [', '%hunter2', '*hunter2', '!!hunter2!x a', 'a: |hunter2'])
    throws(
      () => parseUntrustedYaml(text),
      error => !(error as Error).message.includes('hunter2'),
    )
})

test('copies the value of an alias and gives explicit keys precedence over merged ones', () => {
  const { a, b, c } = parseUntrustedYaml('a: &a {x: [1], v: 1}\nb: {<<: *a, v: 2}\nc: {v: 3, <<: [{v: 4, z: 5}, {z: 6}]}\n') as Record<
    string,
    { x: unknown }
  >
  deepEqual(
    [b, c],
    [
      { x: [1], v: 2 },
      { v: 3, z: 5 },
    ],
  )
  notEqual(a?.x, b?.x)
})

test('keeps a key __proto__ as a field, and formats keys as strings', () => {
  const value = parseUntrustedYaml('__proto__: {polluted: true}\n1: a\nyes: b\n!!binary aGk=: !!binary aGk=\n')
  deepEqual(Object.entries(value as object), [
    ['1', 'a'],
    ['__proto__', { polluted: true }],
    ['true', 'b'],
    ['hi', 'hi'],
  ])
})

test('parses one document after another', () => {
  deepEqual([...parseUntrustedDocuments('a: 1\n---\n# nothing\n---\nb: 2\n')], [{ a: 1 }, null, { b: 2 }])
  deepEqual([...parseUntrustedDocuments('')], [])
  const documents = parseUntrustedDocuments('a: 1\n---\na: [\n')
  deepEqual(documents.next().value, { a: 1 })
  throws(() => documents.next(), /at line 4, column 1$/)
})

for (const [name, text] of [
  ['nested keys that are maps', `spec:\n${'  ? '.repeat(1_000)}x`],
  ['nested keys that are maps in flow style', `${'{? '.repeat(1_000)}x${'}'.repeat(1_000)}`],
  ['keys of a set', `a: !!set\n${repeat(2_000, index => `? k${index}\n`)}`],
  ['an ordered map with many keys', `a: !!omap\n${repeat(2_000, index => `- k${index}: 1\n`)}`],
  ['many keys', repeat(10_000, index => `k${index}: v\n`)],
  ['many merges of many keys', `a: &a {${repeat(500, index => `k${index}: v,`)}}\n${repeat(2_000, index => `b${index}: {<<: *a}\n`)}`],
] as const) {
  test(`takes linear time for ${name}`, () => {
    const ms = cpuMs(() => {
      try {
        ok(parseUntrustedYaml(text))
      } catch (error) {
        equal((error as Error).name, 'YamlError')
      }
    })
    // The slowest takes 0.2 s; the nested keys took hours.
    ok(ms < 6_000, `${ms} ms`)
  })
}
