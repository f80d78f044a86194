import type { Value } from './values.ts'

/**
 * A parsed expression. `at` is the offset in the source that errors refer to: an operator, a dot, an opening bracket.
 * `nodes` counts the expression including its children, the cost of one evaluation; `depth` is its nesting depth.
 */
export type Expr = { readonly at: number; readonly nodes: number; readonly depth: number } & (
  | { readonly op: 'const'; readonly value: Value }
  | { readonly op: 'ident'; readonly name: string }
  /** `operand.field`; `operand.?field` when optional; `has(operand.field)` when a test. */
  | { readonly op: 'select'; readonly operand: Expr; readonly field: string; readonly isTest: boolean; readonly isOptional: boolean }
  | { readonly op: 'call'; readonly name: string; readonly target: Expr | undefined; readonly args: readonly Expr[] }
  | { readonly op: 'list'; readonly items: readonly Expr[]; readonly optional: ReadonlySet<number> }
  | { readonly op: 'map'; readonly entries: readonly { key: Expr; value: Expr; isOptional: boolean }[] }
  | {
      readonly op: 'comprehension'
      readonly macro: ComprehensionMacro
      readonly range: Expr
      readonly names: readonly string[]
      readonly body: readonly Expr[]
    }
  /** `target.optMap(name, body)` and `optFlatMap`. */
  | { readonly op: 'optMap'; readonly isFlat: boolean; readonly target: Expr; readonly name: string; readonly body: Expr }
)

/** The macros that iterate over a list or map. With a filter, it is the first element of `body`. */
export type ComprehensionMacro =
  | 'all'
  | 'exists'
  | 'exists_one'
  | 'map'
  | 'filter'
  | 'sortBy'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry'

type OmitCounts<T> = T extends unknown ? Omit<T, 'nodes' | 'depth'> : never

/** Sets the counts of a node from those of its children. */
export function node(expr: OmitCounts<Expr>, ...children: Expr[]): Expr {
  let nodes = 1
  let depth = 0
  for (const child of children) {
    nodes += child.nodes
    if (child.depth > depth) depth = child.depth
  }
  return { ...expr, nodes, depth: depth + 1 } as Expr
}
