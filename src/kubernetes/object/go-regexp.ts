import { createRequire } from 'node:module'
import type * as re2 from 're2js'
import { chargeCost, chargeCpuTime } from './cost-limit.ts'

/** A regular expression in Go's notation. Matching takes steps of the running meter, see `cost-limit.ts`. */
export type GoRegexp = {
  /** Throws `OutOfSteps` when the meter runs out, and for a text that is too long for the pattern. */
  test: (text: string) => boolean
  /** The first `limit` matches, from left to right. */
  findAll: (text: string, limit: number) => string[]
}

const maxPatternLength = 10_000

/**
 * Length of the text times size of the pattern. RE2 takes 10 ns for each character as long as it knows the state it comes
 * to, and up to 60 ns times the size of the pattern when every character leads to a new one: 60 ms with this limit.
 */
const maxWork = 1_000_000
/** Below this much work a match takes less than a millisecond whatever the pattern, and is not timed. */
const maxUntimedWork = 10_000

/** Patterns are those of schemas and rules, so few; the limit is for a client that keeps changing a CRD. */
const maxCompiled = 2_000
const compiled = new Map<string, GoRegexp | string>()

/**
 * Compiles a pattern of a schema or a rule. Undefined if it is none in Go's eyes (RE2 syntax: no look-around, no
 * back-references, at most 1,000 repetitions).
 *
 * The engine is RE2, which takes linear time: JavaScript's own would take minutes for `^(a+)+$` and a short text, and
 * nothing else would be served meanwhile. Patterns of which anybody sees that they are harmless are left to JavaScript,
 * which is faster with them and spares loading RE2 (10 ms, 4 MB).
 */
export function compileGoRegexp(pattern: string): GoRegexp | undefined {
  const expression = compile(pattern)
  return typeof expression === 'string' ? undefined : expression
}

/** Why a pattern is none, in Go's words; undefined when it is one. */
export function goRegexpError(pattern: string): string | undefined {
  const expression = compile(pattern)
  return typeof expression === 'string' ? expression : undefined
}

function compile(pattern: string): GoRegexp | string {
  if (pattern.length > maxPatternLength) return `it is longer than ${maxPatternLength} characters`
  let expression = compiled.get(pattern)
  if (expression !== undefined) return expression
  if (compiled.size >= maxCompiled) compiled.clear()
  expression = compileHarmless(pattern) ?? compileRe2(pattern)
  compiled.set(pattern, expression)
  return expression
}

const atom = String.raw`(?:[^\\^$.|?*+()[\]{}]|\\[dwDW.\-/\\_+*?()[\]{}^$|]|\.|\[\^?(?:\\[dw.\-/\\_+*?()[\]{}^$|]|[^\\[\]^])+\])`
const harmless = new RegExp(String.raw`^(\^?)((?:${atom}(?:[?*+]|\{\d{1,3}(?:,\d{0,3})?\})?)*)\$?$`, 'su')
const atoms = new RegExp(String.raw`${atom}([?*+]|\{(\d+)(,?)(\d*)\})?`, 'gsu')
/** Characters that one match of a harmless pattern may take apart from what varies: going back is tried at each of them. */
const maxHarmlessSize = 100

/**
 * A sequence of characters and classes, of which at most one repeats a varying number of times, and none unless the
 * sequence starts at the start of the text: nothing to go back over, so linear.
 */
function compileHarmless(pattern: string): GoRegexp | undefined {
  const match = harmless.exec(pattern)
  if (!match) return undefined
  const [, anchor, sequence] = match
  let varying = 0
  let size = 0
  for (const [, quantifier = '', from = '1', comma = '', to = ''] of sequence!.matchAll(atoms)) {
    if (to !== '' && Number(from) > Number(to)) return undefined
    if (quantifier !== '' && (comma !== '' || !quantifier.startsWith('{'))) varying++
    size += Math.max(Number(from), Number(to), 1)
  }
  if (varying > (anchor === '' ? 0 : 1) || size > maxHarmlessSize) return undefined
  let expression: RegExp
  try {
    // Go's dot leaves out nothing but the line feed.
    expression = new RegExp(
      pattern.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\./gs, part => (part === '.' ? '[^\\n]' : part)),
      'u',
    )
  } catch {
    return undefined
  }
  const test = (text: string) => {
    chargeCost(1 + ((text.length * size) >> 5))
    return expression.test(text)
  }
  // Finding is rare: that it needs RE2 costs no one who only tests.
  const findAll = (text: string, limit: number) => {
    const slow = compileRe2(pattern)
    return typeof slow === 'string' ? [] : slow.findAll(text, limit)
  }
  return { test, findAll }
}

let engine: typeof re2 | undefined

function compileRe2(pattern: string): GoRegexp | string {
  engine ??= createRequire(import.meta.url)('re2js') as typeof re2
  let expression: re2.RE2JS
  try {
    expression = engine.RE2JS.compile(pattern)
  } catch (error) {
    return (error as Error).message
  }
  const size = expression.programSize()
  const matched = <T>(text: string, match: () => T): T => {
    const work = (text.length + 1) * size
    if (work > maxWork) chargeCost(Number.POSITIVE_INFINITY)
    chargeCost(1 + (text.length >> 1))
    return work > maxUntimedWork ? chargeCpuTime(match) : match()
  }
  return {
    test: text => matched(text, () => expression.test(text)),
    findAll: (text, limit) =>
      matched(text, () => {
        const found: string[] = []
        const matcher = expression.matcher(text)
        while (found.length < limit && matcher.find()) found.push(matcher.group() ?? '')
        return found
      }),
  }
}
