import { createRequire } from 'node:module'
import type * as re2 from 're2js'
import { chargeCost, chargeCpuTime } from './cost-limit.ts'

/** A regular expression in Go's syntax. Matching is charged to the cost limit, see `cost-limit.ts`. */
export type GoRegexp = {
  /** Throws `CostLimitExceededError` when the limit is exceeded, or when the text is too long for the pattern. */
  test: (text: string) => boolean
  /** The first `limit` matches, from left to right. */
  findAll: (text: string, limit: number) => string[]
}

const maxPatternLength = 10_000

/**
 * Length of the text times size of the pattern. RE2 takes 10 ns per character while its automaton reuses known states, and
 * up to 60 ns times the size of the pattern when every character creates a new state: 60 ms at this limit.
 */
const maxWork = 1_000_000
/** Below this amount a match takes less than a millisecond for any pattern, and is not timed. */
const maxUntimedWork = 10_000

/** Patterns come from schemas and rules, so they are few; the limit is for a client that keeps changing a CRD. */
const maxCompiled = 2_000
const compiled = new Map<string, GoRegexp | string>()

/**
 * Compiles a pattern of a schema or a rule. Undefined if it is not valid in Go (RE2 syntax: no look-around, no
 * back-references, at most 1,000 repetitions).
 *
 * The engine is RE2, which takes linear time: JavaScript's own would take minutes for `^(a+)+$` and a short text, and block
 * the server meanwhile. Patterns that provably cannot backtrack are left to JavaScript, which is faster for them and
 * avoids loading RE2 (10 ms, 4 MB).
 */
export function compileGoRegexp(pattern: string): GoRegexp | undefined {
  const expression = compile(pattern)
  return typeof expression === 'string' ? undefined : expression
}

/** Why a pattern is invalid, in Go's words; undefined if it is valid. */
export function goRegexpError(pattern: string): string | undefined {
  const expression = compile(pattern)
  return typeof expression === 'string' ? expression : undefined
}

function compile(pattern: string): GoRegexp | string {
  if (pattern.length > maxPatternLength) return `it is longer than ${maxPatternLength} characters`
  let expression = compiled.get(pattern)
  if (expression !== undefined) return expression
  if (compiled.size >= maxCompiled) compiled.clear()
  expression = compileBacktrackFree(pattern) ?? compileRe2(pattern)
  compiled.set(pattern, expression)
  return expression
}

const atom = String.raw`(?:[^\\^$.|?*+()[\]{}]|\\[dwDW.\-/\\_+*?()[\]{}^$|]|\.|\[\^?(?:\\[dw.\-/\\_+*?()[\]{}^$|]|[^\\[\]^])+\])`
const backtrackFree = new RegExp(String.raw`^(\^?)((?:${atom}(?:[?*+]|\{\d{1,3}(?:,\d{0,3})?\})?)*)\$?$`, 'su')
const atoms = new RegExp(String.raw`${atom}([?*+]|\{(\d+)(,?)(\d*)\})?`, 'gsu')
/** The number of characters that one match of such a pattern may consume besides its repetition: each of them may be tried again. */
const maxBacktrackFreeSize = 100

/**
 * A sequence of characters and classes, of which at most one repeats a variable number of times, and none unless the
 * sequence is anchored at the start: there is nothing to backtrack over, so it takes linear time.
 */
function compileBacktrackFree(pattern: string): GoRegexp | undefined {
  const match = backtrackFree.exec(pattern)
  if (!match) return undefined
  const [, anchor, sequence] = match
  let varying = 0
  let size = 0
  for (const [, quantifier = '', from = '1', comma = '', to = ''] of sequence!.matchAll(atoms)) {
    if (to !== '' && Number(from) > Number(to)) return undefined
    if (quantifier !== '' && (comma !== '' || !quantifier.startsWith('{'))) varying++
    size += Math.max(Number(from), Number(to), 1)
  }
  if (varying > (anchor === '' ? 0 : 1) || size > maxBacktrackFreeSize) return undefined
  let expression: RegExp
  try {
    // Go's dot matches everything except the line feed.
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
  // Finding is rare: only its callers pay for loading RE2.
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
