import { compileGoRegexp } from '../object/go-regexp.ts'
import type { Expr } from './ast.ts'
import { conversions, parseGoDuration, parseTimestamp } from './functions/conversions.ts'
import type { SourceIssue } from './source-error.ts'
import { CelError } from './values.ts'

/** Invalid literal patterns, durations and timestamps in an expression, which are reported when it is compiled. */
export function literalIssues(expr: Expr): SourceIssue[] {
  const issues: SourceIssue[] = []
  walk(expr, node => {
    if (node.op !== 'call') return
    const last = node.args.at(-1)
    if (last?.op !== 'const' || typeof last.value !== 'string') return
    const { name, target, args } = node
    const isPattern = name === 'matches' && args.length === (target ? 1 : 2)
    const isLiteral = (name === 'duration' || name === 'timestamp') && args.length === 1 && !target
    if (isPattern && !compileGoRegexp(last.value)) issues.push({ at: last.at, message: 'invalid matches argument' })
    if (isLiteral && !isReadable(name === 'duration' ? parseGoDuration : parseTimestamp, last.value)) {
      issues.push({ at: last.at, message: `invalid ${name} argument` })
    }
  })
  return issues
}

/** Why the conversion of a literal, such as `int('x')`, can never succeed; undefined if none fails. */
export function conversionIssue(expr: Expr): string | undefined {
  let issue: string | undefined
  walk(expr, node => {
    if (node.op !== 'call' || node.target || node.args.length !== 1 || !Object.hasOwn(conversions, node.name)) return
    const [arg] = node.args
    if (arg?.op !== 'const') return
    try {
      conversions[node.name]!(arg.value)
    } catch (error) {
      if (!(error instanceof CelError)) throw error
      issue ??= error.message
    }
  })
  return issue
}

function isReadable(read: (text: string) => unknown, text: string): boolean {
  try {
    read(text)
    return true
  } catch (error) {
    if (error instanceof CelError) return false
    throw error
  }
}

function walk(expr: Expr, visit: (node: Expr) => void): void {
  visit(expr)
  for (const child of children(expr)) walk(child, visit)
}

function children(expr: Expr): readonly Expr[] {
  switch (expr.op) {
    case 'const':
    case 'ident':
      return []
    case 'select':
      return [expr.operand]
    case 'call':
      return expr.target ? [expr.target, ...expr.args] : expr.args
    case 'list':
      return expr.items
    case 'map':
      return expr.entries.flatMap(({ key, value }) => [key, value])
    case 'comprehension':
      return [expr.range, ...expr.body]
    case 'optMap':
      return [expr.target, expr.body]
  }
}
