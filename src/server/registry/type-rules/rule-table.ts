import { podRules } from './pod-rules.ts'
import type { RuleTable, TypeRules } from './type-rules.ts'

/** Every file with rules of types, one line each. */
const tables: readonly RuleTable[] = [podRules]

let all: ReadonlyMap<string, TypeRules> | undefined

/** The rules of each type, by names such as `core.v1.Container`. */
export function ruleTable(): ReadonlyMap<string, TypeRules> {
  all ??= new Map(tables.flatMap(table => Object.entries(table)))
  return all
}
