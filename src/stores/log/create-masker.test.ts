import { equal, match, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { cpuMs } from '../../../test/support/cpu-ms.ts'
import { seededRandom } from '../../kubernetes/util/index.ts'
import { createMasker, SecretsTooLargeError } from './index.ts'
import { TextIndex } from './text-index.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
for (const { name, secrets, line, want } of [
  { name: 'no secret, nothing to do', secrets: [], line: 'hello', want: 'hello' },
  { name: 'a value', secrets: ['hunter2'], line: 'password=hunter2, again hunter2', want: 'password=***, again ***' },
  { name: 'the longer secret first', secrets: ['pass', 'password1'], line: 'x password1 y pass', want: 'x *** y ***' },
  { name: 'overlapping secrets as one', secrets: ['abcdef', 'defghi'], line: '<abcdefghi>', want: '<***>' },
  {
    name: 'a secret of 2 or 3 characters as a whole word',
    secrets: ['abc', 'x9', '#1'],
    line: 'abc (x9) #1 abcd max9 a#1',
    want: '*** (***) *** abcd max9 a#1',
  },
  { name: 'no single character', secrets: ['a', ''], line: 'a b', want: 'a b' },
  { name: 'short secrets of marks not', secrets: ['**', '--'], line: '** --', want: '** --' },
  { name: 'regular expression characters literally', secrets: ['a.c$(x)'], line: 'a.c$(x) abc$(x)', want: '*** abc$(x)' },
  { name: 'a secret encoded in JSON', secrets: ['say "hi"'], line: '{"text":"say \\"hi\\""}', want: '{"text":"***"}' },
  { name: 'a secret encoded in JSON by Go', secrets: ['a<b>&c'], line: '"a\\u003cb\\u003e\\u0026c"', want: '"***"' },
  {
    name: 'a secret in nested JSON',
    secrets: ['a"bcd'],
    line: JSON.stringify(JSON.stringify({ x: 'a"bcd' })),
    want: '"{\\"x\\":\\"***\\"}"',
  },
  { name: 'a secret in a URL', secrets: ['p@ss/word'], line: 'https://u:p%40ss%2Fword@host', want: 'https://u:***@host' },
  { name: 'a secret in base64', secrets: ['hunter2-secret'], line: `data: ${base64('hunter2-secret')}`, want: 'data: ***' },
  { name: 'each line of a multi-line secret', secrets: ['-----BEGIN-----\nMIIEabc\n-----END-----'], line: '  MIIEabc', want: '  ***' },
  { name: 'a multi-line secret', secrets: ['line-1\nline-2'], line: 'x line-1\nline-2 y', want: 'x *** y' },
  { name: 'a secret that a replacement forms', secrets: ['WXYZ', 'a***'], line: 'aWXYZ', want: '***' },
]) {
  test(`masks ${name}`, () => equal(createMasker(secrets).mask(line), want))
}

test('masks secrets that are added later', () => {
  const masker = createMasker(['first-secret'])
  equal(masker.mask('first-secret second-secret'), '*** second-secret')
  masker.add('second-secret')
  equal(masker.mask('first-secret second-secret'), '*** ***')
})

test('masks the password in a Basic header at any alignment', () => {
  const password = 'correct-horse-battery'
  for (const user of ['a', 'ab', 'abc', 'abcd']) {
    const masked = createMasker([password]).mask(`authorization: Basic ${base64(`${user}:${password}`)}`)
    const decoded = Buffer.from(masked.split('Basic ')[1]?.replace('***', '') ?? '', 'base64').toString()
    ok(!decoded.includes('orse-batt'), masked)
    ok(masked.includes('***'), masked)
  }
})

test('the output never contains a secret (invariant 9)', () => {
  const piece = fc.oneof(
    fc.string({ minLength: 4, maxLength: 12 }),
    fc.constantFrom('****', 'a***', '***b', 'aaaa', 'aaaaa', 'baab', '\\"\\"', 'x\ny\nzzzz'),
  )
  const filler = fc.oneof(fc.string({ maxLength: 5 }), fc.constantFrom('*', 'a', 'b', '\\', '"'))
  const forms = [
    (text: string) => text,
    (text: string) => JSON.stringify(text),
    (text: string) => base64(text),
    (text: string) => (text.isWellFormed() ? encodeURIComponent(text) : text),
  ]
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 5 }),
      fc.array(fc.record({ before: filler, which: fc.nat(4), form: fc.nat(3), after: filler }), { maxLength: 6 }),
      (secrets, uses) => {
        const line = uses
          .map(({ before, which, form, after }) => before + (forms[form]?.(secrets[which % secrets.length] ?? '') ?? '') + after)
          .join('')
        const masked = createMasker(secrets).mask(line)
        for (const secret of secrets) {
          ok(!masked.includes(secret), `${JSON.stringify(secret)} in ${JSON.stringify(masked)}`)
          ok(secret.length < 6 || !masked.includes(base64(secret)), 'base64')
        }
      },
    ),
    { numRuns: 500 },
  )
})

test('masks with hundreds of secrets quickly', t => {
  const random = (i: number) =>
    Buffer.from(`secret-${i}-${(i * 7919) % 65_537}`)
      .toString('base64')
      .slice(0, 24)
  const masker = createMasker(Array.from({ length: 300 }, (_, i) => random(i)))
  const line = 'aws_instance.web[3]: Still creating... [id=i-0abc12345678, 00m10s elapsed] with some more text to make it long'
  masker.mask(line)
  const runMs = cpuMs(() => {
    for (let i = 0; i < 5_000; i++) masker.mask(line)
  })
  const perLineUs = (runMs / 5_000) * 1_000
  t.diagnostic(`300 secrets: ${perLineUs.toFixed(1)} µs for a line of ${line.length} characters`)
  ok(perLineUs < 2_000, `${perLineUs} µs`)
})

const randomText = (length: number) => {
  const random = seededRandom(1)
  return Array.from({ length }, () => String.fromCharCode(97 + Math.floor(random() * 26))).join('')
}

for (const chars of [60_000, 1024 * 1024]) {
  test(`masks a secret of ${chars} characters in every encoding, and its parts`, () => {
    const secret = randomText(chars)
    const masker = createMasker([secret])
    for (const form of [secret, base64(secret), encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])
      equal(masker.mask(`<${form}>`), '<***>')
    match(masker.mask(base64(`ab${secret}`)), /^YW.?\*\*\*.{0,4}$/)
    ok(!masker.mask(`${secret.slice(0, 600)}\n`).includes(secret.slice(255, 510)))
    ok(masker.maxLength < 1_000, `a line is buffered for ${masker.maxLength} further characters`)
  })
}

test('masks each line of a PEM bundle of 100 KB, and the whole', () => {
  const body = randomText(100_000).match(/.{64}/g) as string[]
  const pem = `-----BEGIN CERTIFICATE-----\n${body.join('\n')}\n-----END CERTIFICATE-----\n`
  const masker = createMasker([pem])
  equal(masker.mask(`  ${body[700]}`), '  ***')
  equal(masker.mask(`x${pem}y`), 'x***y')
  equal(masker.mask(`{"ca":${JSON.stringify(pem)}}`), '{"ca":"***"}')
})

test('rejects more than 4 MiB of secrets with an error that contains none', () => {
  const masker = createMasker([])
  for (let i = 0; i < 4; i++) masker.add(`${i}${randomText(1024 * 1024 - 1)}`)
  throws(
    () => masker.add('hunter2'),
    (error: Error) => error instanceof SecretsTooLargeError && !error.message.includes('hunter2'),
  )
})

for (const { name, secrets, line } of [
  { name: 'a secret of which the line repeats the beginning', secrets: [`${'a'.repeat(40_000)}b`], line: 'a'.repeat(65_000) },
  {
    name: 'secrets with the same beginning',
    secrets: Array.from({ length: 200 }, (_, i) => 'a'.repeat(200) + i),
    line: 'a'.repeat(65_000),
  },
  { name: 'replacements that form secrets again', secrets: ['***a', 'b***'], line: `***${'a'.repeat(65_000)}` },
  { name: 'a secret of many lines', secrets: [randomText(50_000).replaceAll(/.{16}/g, '$&\n')], line: randomText(65_000) },
]) {
  test(`takes linear time for ${name}`, t => {
    const masker = createMasker(secrets)
    const ms = cpuMs(() => masker.mask(line))
    t.diagnostic(`${Math.round(ms)} ms for a line of ${line.length} characters`)
    ok(ms < 10_000, `${ms} ms`)
  })
}

test('finds what naive search finds', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), minLength: 4, maxLength: 20 })
  fc.assert(
    fc.property(
      fc.array(text, { minLength: 1, maxLength: 8 }),
      fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 80 }),
      (texts, line) => {
        const found = new Map<number, number>()
        new TextIndex(new Set(texts)).scan(line, 0, line.length, (start, end) => void found.set(start, end))
        for (let start = 0; start < line.length; start++) {
          const longest = Math.max(0, ...texts.filter(each => line.startsWith(each, start)).map(({ length }) => length))
          equal(found.get(start), longest > 0 ? start + longest : undefined)
        }
      },
    ),
    { numRuns: 1_000 },
  )
})
