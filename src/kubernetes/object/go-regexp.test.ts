/** Patterns come from users: those of CRDs, and of `matches` in CEL. None reaches the backtracking engine of JavaScript where it could backtrack. */
import { equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { CostLimitExceededError } from './cost-limit.ts'
import { compileGoRegexp } from './go-regexp.ts'

/** The result, and undefined if the text is too long for the pattern. */
function testOf(pattern: string, text: string): boolean | undefined {
  try {
    return compileGoRegexp(pattern)!.test(text)
  } catch (error) {
    if (error instanceof CostLimitExceededError) return undefined
    throw error
  }
}

// Each takes minutes to centuries in JavaScript's engine, for a text of some thousand characters.
for (const [pattern, text] of [
  ['^(a+)+$', `${'a'.repeat(5_000)}!`],
  ['^(a|a)*$', `${'a'.repeat(5_000)}!`],
  ['^(a|aa)+$', `${'a'.repeat(5_000)}!`],
  ['^(.*)*x$', 'a'.repeat(5_000)],
  ['(.*a){12}', 'b'.repeat(5_000)],
  ['^a*a*a*a*a*a*a*a*b$', 'a'.repeat(5_000)],
  ['a*a*a*b', 'a'.repeat(5_000)],
  ['^[a-z]*[a-z]*[a-z]*[0-9]$', 'a'.repeat(5_000)],
  ['^\\d{0,50}\\d{0,50}\\d{0,50}$', '1'.repeat(5_000)],
  ['^([a-z]+)*@([a-z]+\\.)+$', `${'a'.repeat(2_500)}@${'a'.repeat(2_500)}`],
] as const)
  test(`a hostile pattern takes no more than linear time: ${pattern}`, () => {
    const before = process.cpuUsage()
    ok(testOf(pattern, text) !== true)
    const { user, system } = process.cpuUsage(before)
    ok(user + system < 2_000_000, `${user + system} µs of CPU`)
  })

const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '\\d', '-', '\\.')
const quantifier = fc.constantFrom('', '', '?', '*', '+', '{2}', '{0,3}', '{2,}')
const sequence = fc.array(fc.tuple(atom, quantifier), { minLength: 1, maxLength: 6 }).map(parts => parts.flat().join(''))
const pattern = fc
  .tuple(
    fc.constantFrom('', '^'),
    fc.oneof(
      sequence,
      fc.tuple(sequence, sequence).map(([a, b]) => `(${a}|${b})+`),
    ),
    fc.constantFrom('', '$'),
  )
  .map(parts => parts.join(''))
// Of the Basic Multilingual Plane: re2js reads half of a surrogate pair for `[^a]$`.
const text = fc.string({ unit: fc.constantFrom('a', 'b', '1', '-', '.', '\n', 'é'), maxLength: 30 })

test('patterns that are left to JavaScript have the result of RE2', () => {
  fc.assert(
    fc.property(pattern, text, (source, input) => equal(testOf(source, input), RE2JS.compile(source).test(input), source)),
    { numRuns: 5_000 },
  )
})

test('no pattern takes more than linear time on a text that it almost matches', () => {
  fc.assert(
    fc.property(pattern, fc.constantFrom('a', 'ab', 'a-', '1a'), (source, part) => {
      const before = process.cpuUsage()
      testOf(source, `${part.repeat(3_000)}\n`)
      const { user, system } = process.cpuUsage(before)
      ok(user + system < 1_000_000, `${source}: ${user + system} µs of CPU`)
    }),
    { numRuns: 500 },
  )
})
