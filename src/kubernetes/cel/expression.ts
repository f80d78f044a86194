import type { Expr } from './ast.ts'
import { check } from './check.ts'
import { compile } from './evaluate.ts'
import { conversionIssue, literalIssues } from './literal-issues.ts'
import { parse } from './parse.ts'
import type { Program } from './program.ts'
import { formatIssues, type SourceIssue, SyntaxIssue } from './source-error.ts'
import { type CelType, formatType } from './types.ts'

/** A compiled expression. */
export type Expression = {
  /** In CEL's notation, such as `list(string)`. */
  readonly type: string
  /** The variables that the expression uses. */
  readonly used: ReadonlySet<string>
  /** Takes the values of the variables in the order of their declaration. */
  readonly run: Program
}

/** Far above the length of any handwritten rule; checking longer ones would delay other requests. */
const maxLength = 50_000

/**
 * Parses, checks and compiles a CEL expression.
 * @param variables their names and types, in the order in which `run` takes their values.
 * @returns the expression, or its errors in cel-go's words: `compilation failed: …`.
 */
export function compileExpression(source: string, variables: ReadonlyMap<string, CelType>): Expression | string {
  if (source.length > maxLength)
    return `compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit: size: ${source.length}, limit ${maxLength}`
  let expr: Expr
  try {
    expr = parse(source)
  } catch (error) {
    if (error instanceof SyntaxIssue) return `compilation failed: ${formatIssues(source, [error.issue])}`
    throw error
  }
  const { type, issues, used, qualified } = check(expr, variables)
  const all: SourceIssue[] = [...issues, ...(issues.length === 0 ? literalIssues(expr) : [])]
  if (all.length > 0) return `compilation failed: ${formatIssues(source, all)}`
  const conversion = conversionIssue(expr)
  if (conversion !== undefined) return `instantiation failed: ${conversion}`
  return { type: formatType(type), used, run: compile(expr, [...variables.keys()], qualified) }
}
