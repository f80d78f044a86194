import { filterFields, matchesFilter, parseFilter, type StackRow } from '../protocol/index.ts'
import { withAttention } from './attention.ts'
import type { Projections } from './projections.ts'

type Visible = { readonly all: true } | { readonly all: false; readonly namespaces: ReadonlySet<string> }

/** The Stacks that a user may see, and that are named or match the filter. @throws {FilterError} */
export function matchingStacks(
  { tables }: Pick<Projections, 'tables'>,
  { filter, stacks }: { readonly filter?: string; readonly stacks?: readonly { readonly key: string }[] },
  visible: Visible,
  nowMs: number,
): StackRow[] {
  const parsed = parseFilter(filter ?? '', filterFields.stacks)
  const named = stacks && new Set(stacks.map(({ key }) => key))
  const found: StackRow[] = []
  for (const row of withAttention(tables.stacks.values(), parsed, nowMs)) {
    if (!visible.all && !visible.namespaces.has(row.namespace)) continue
    if (named ? named.has(row.key) : matchesFilter(row, parsed)) found.push(row)
  }
  return found
}
