import type { RuleResult } from '../cel/index.ts'
import { isJsonObject } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { loadCel } from './load-cel.ts'

export type { RuleResult }

// Loading CEL takes 20 ms and 3 MB (twice that from source), so it is deferred to the first rule. It is loaded synchronously
// then: rules run while a write is being decided, which cannot wait.
let loaded: typeof import('../cel/index.ts') | undefined

function cel(): typeof import('../cel/index.ts') {
  loaded ??= loadCel()
  return loaded
}

/** True if the schema has `x-kubernetes-validations` at any depth: false allows a caller to skip {@link validateRules}. */
export function hasRules(schema: unknown): boolean {
  if (!isJsonObject(schema)) return false
  if (schema['x-kubernetes-validations'] !== undefined) return true
  const { properties, items, additionalProperties } = schema
  return hasRules(items) || hasRules(additionalProperties) || (isJsonObject(properties) && Object.values(properties).some(hasRules))
}

/**
 * Evaluates the `x-kubernetes-validations` in the schema of a whole object, with errors in Kubernetes' words. The cost limit
 * bounds it to about 50 ms for any rules and object; an object that exceeds it is rejected.
 * @param oldValue the stored object, for transition rules; errors in unchanged parts are returned as `warnings` only.
 */
export function validateRules(schema: StructuralSchema, value: unknown, oldValue: unknown): RuleResult {
  return cel().checkRules(schema, value, oldValue)
}

/**
 * Why the rules in the schema of a definition are invalid: they do not compile, or use old values where there are none.
 * With `isStructural` false only their syntax is checked, since types are unknown.
 */
export function ruleErrors(schema: unknown, path: string, isStructural: boolean): StatusCause[] {
  return hasRules(schema) ? cel().ruleErrors(schema as StructuralSchema, path, isStructural) : []
}
