import type { RuleResult } from '../cel/index.ts'
import { isJsonObject } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { loadCel } from './load-cel.ts'

export type { RuleResult }

// Loading CEL takes 20 ms and 3 MB (twice that from source), so it is loaded for the first rule. That load is synchronous: rules are
// evaluated while a write is decided, which must not be interrupted.
let loaded: typeof import('../cel/index.ts') | undefined

function cel(): typeof import('../cel/index.ts') {
  loaded ??= loadCel()
  return loaded
}

/** True if there are `x-kubernetes-validations` in the schema or below: false lets a caller skip {@link checkRules}. */
export function hasRules(schema: unknown): boolean {
  if (!isJsonObject(schema)) return false
  if (schema['x-kubernetes-validations'] !== undefined) return true
  const { properties, items, additionalProperties } = schema
  return hasRules(items) || hasRules(additionalProperties) || (isJsonObject(properties) && Object.values(properties).some(hasRules))
}

/**
 * Checks the `x-kubernetes-validations` of the schema of a whole object, in Kubernetes' words. Takes about 50 ms at most,
 * whatever the rules and the object; what was not checked by then is refused.
 * @param oldValue the stored object, for transition rules; and what did not change since is told in `warnings` only.
 */
export function checkRules(schema: StructuralSchema, value: unknown, oldValue: unknown): RuleResult {
  return cel().checkRules(schema, value, oldValue)
}

/**
 * Why the rules in the schema of a definition cannot be served: they do not compile, or ask for old values where there are
 * none. With `isStructural` false only their form is looked at, since types cannot be told.
 */
export function ruleErrors(schema: unknown, path: string, isStructural: boolean): StatusCause[] {
  return hasRules(schema) ? cel().ruleErrors(schema as StructuralSchema, path, isStructural) : []
}
