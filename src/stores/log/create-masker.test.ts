import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createMasker } from './index.ts'

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
  const startMs = performance.now()
  for (let i = 0; i < 5_000; i++) masker.mask(line)
  const perLineUs = ((performance.now() - startMs) / 5_000) * 1_000
  t.diagnostic(`300 secrets: ${perLineUs.toFixed(1)} µs for a line of ${line.length} characters`)
  ok(perLineUs < 2_000, `${perLineUs} µs`)
})
