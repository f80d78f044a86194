import { CostLimitExceededError, chargeCost, withCostLimit } from '../object/cost-limit.ts'
import { duplicateValue, forbiddenField, invalidValue, requiredValue } from '../object/field-cause.ts'
import { equalJson, getOwn, isJsonObject } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { type CompiledRule, type RuleTree, rulesOf } from './compile-rules.ts'
import type { Expression } from './expression.ts'
import { asResource } from './schema-types.ts'
import { toValue } from './schema-values.ts'
import { CelError, Optional, type Value } from './values.ts'

export type RuleResult = {
  readonly causes: StatusCause[]
  /** What is wrong with values that are as they were before; told, but no reason to refuse. */
  readonly warnings: string[]
}

/** Steps of all rules of one object, about 50 ms: a write holds up the others no longer than this. */
const maxSteps = 1_000_000
/** What running a rule takes beside its own steps, and what telling that it failed takes. */
const stepsPerRule = 20
const stepsPerFailure = 100
const maxCauses = 200
const maxWarnings = 50
const maxMessageBytes = 5 * 1024

/**
 * Checks the `x-kubernetes-validations` of a schema, its own and those below, against a whole object that fits the schema.
 * @param oldValue the stored object: transition rules (those with `oldSelf`) run only where an old value corresponds, that
 * is, not below items of lists other than those of type map; and a rule that fails on a value that is as it was is a warning.
 */
export function checkRules(schema: StructuralSchema, value: unknown, oldValue: unknown): RuleResult {
  const result: RuleResult = { causes: [], warnings: [] }
  const tree = rulesOf(schema)
  if (tree)
    new RuleChecker(result).check(tree, value, '', oldValue, oldValue === undefined ? undefined : { value, old: oldValue }, undefined)
  return result
}

/** A value and the stored value it corresponds to. */
type Pair = { readonly value: unknown; readonly old: unknown; isSame?: boolean }

function isSame(pair: Pair | undefined): boolean {
  if (!pair) return false
  pair.isSame ??= equalJson(pair.value, pair.old)
  return pair.isSame
}

class RuleChecker {
  readonly #result: RuleResult
  #left = maxSteps

  constructor(result: RuleResult) {
    this.#result = result
  }

  /**
   * False when the steps are used up, and nothing more is checked.
   * @param old what `oldSelf` is; undefined where nothing corresponds.
   * @param pair this value and its old one; undefined where nothing corresponds.
   * @param parent the nearest value above that has an old one.
   */
  check(tree: RuleTree, value: unknown, path: string, old: unknown, pair: Pair | undefined, parent: Pair | undefined): boolean {
    if (value === null || value === undefined) return true
    if (tree.rules.length > 0 && !this.#runRules(tree, value, path, old ?? undefined, pair ?? parent)) return false
    if (this.#result.causes.length > maxCauses) return false
    const above = pair ?? parent
    if (Array.isArray(value)) {
      if (!tree.items) return true
      const oldItem = correlate(tree.schema, old)
      for (const [index, item] of value.entries()) {
        const before = oldItem(item)
        const next = pair && before !== undefined ? { value: item, old: before } : undefined
        if (!this.check(tree.items, item, `${path}[${index}]`, before, next, above)) return false
      }
      return true
    }
    if (!isJsonObject(value)) return true
    const oldFields = isJsonObject(old) ? old : undefined
    for (const name of Object.keys(value)) {
      const child = tree.properties?.get(name) ?? tree.values
      if (!child) continue
      const before = oldFields && getOwn(oldFields, name)
      const next = pair && before !== undefined ? { value: value[name], old: before } : undefined
      const at = tree.properties?.has(name) ? (path === '' ? name : `${path}.${name}`) : `${path}[${name}]`
      if (!this.check(child, value[name], at, before, next, above)) return false
    }
    return true
  }

  #runRules({ rules, schema, isResource }: RuleTree, value: unknown, path: string, old: unknown, pair: Pair | undefined): boolean {
    const field = path || '<nil>'
    const seen = isResource ? asResource(schema) : schema
    const { type = '' } = schema
    const refuse = (why: string) => this.#result.causes.push(invalidValue(field, type, why))
    for (const { rule, program, message, usesOldSelf, fieldPath } of rules) {
      if (usesOldSelf && old === undefined && !rule.optionalOldSelf) continue
      if (typeof program === 'string') {
        refuse(`rule compile error: ${program}`)
        continue
      }
      const read = (): Value[] => {
        const before = usesOldSelf && old !== undefined ? toValue(old, seen) : undefined
        const oldSelf = rule.optionalOldSelf ? (before === undefined ? Optional.none : new Optional(before)) : (before ?? null)
        return [toValue(value, seen), oldSelf]
      }
      const outcome = this.#run(program, read)
      const said = rule.message?.trim() || rule.rule.trim()
      if (outcome instanceof CostLimitExceededError) {
        const why = `'${outcome.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${said}`
        const isFirst = this.#left === maxSteps
        refuse(isFirst ? why : 'validation failed due to running out of cost budget, no further validation rules will be run')
        return false
      }
      if (outcome === true) continue
      if (outcome instanceof CelError) {
        const isOverload = outcome.message.startsWith('no such overload')
        refuse(
          isOverload
            ? `'${outcome.message}': call arguments did not match a supported operator, function or macro signature for rule: ${said}`
            : `${outcome.message} evaluating rule: ${said}`,
        )
        continue
      }
      const detail = this.#message(message, read, rule)
      const at = fieldPath === '' ? field : path === '' ? fieldPath : `${path}.${fieldPath}`
      const cause = causeFor(at, value, detail ?? 'messageExpression evaluation failed due to running out of cost budget', rule.reason)
      this.#left -= stepsPerFailure
      if (!usesOldSelf && isSame(pair)) this.#warn(`${cause.field}: ${cause.message}`)
      else this.#result.causes.push(cause)
      if (detail === undefined) return false
    }
    return true
  }

  #warn(warning: string): void {
    if (this.#result.warnings.length < maxWarnings) this.#result.warnings.push(warning)
  }

  #run(program: Expression, read: () => Value[]): Value | CelError | CostLimitExceededError {
    try {
      const { result, remaining } = withCostLimit(this.#left, () => {
        chargeCost(stepsPerRule)
        return program.run(read())
      })
      if (result === undefined) return new CostLimitExceededError('operation cancelled: actual cost limit exceeded')
      this.#left = remaining
      return result
    } catch (error) {
      if (error instanceof CelError) return error
      throw error
    }
  }

  /** What the user is told about a rule that failed; undefined when the steps are used up. */
  #message(message: Expression | undefined, read: () => Value[], { message: fixed, rule }: CompiledRule['rule']): string | undefined {
    const otherwise = fixed ? fixed.trim() : `failed rule: ${rule.trim()}`
    if (!message) return otherwise
    const outcome = this.#run(message, read)
    if (outcome instanceof CostLimitExceededError) return undefined
    const text = typeof outcome === 'string' ? outcome.trim() : ''
    const isUsable = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= maxMessageBytes
    return isUsable ? text : otherwise
  }
}

/** Finds the old item that corresponds to a new one: the one with the same keys in lists of type map, none in others. */
function correlate(schema: StructuralSchema, old: unknown): (item: unknown) => unknown {
  const keys = schema['x-kubernetes-list-map-keys']
  if (schema['x-kubernetes-list-type'] !== 'map' || !keys || !Array.isArray(old)) return () => undefined
  const keyOf = (item: unknown) => (isJsonObject(item) ? JSON.stringify(keys.map(key => getOwn(item, key) ?? null)) : undefined)
  const byKey = new Map(old.map(item => [keyOf(item), item]))
  return item => byKey.get(keyOf(item))
}

function causeFor(field: string, value: unknown, detail: string, reason: string | undefined): StatusCause {
  const isWhole = typeof value === 'object'
  switch (reason) {
    case 'FieldValueForbidden':
      return forbiddenField(field, detail)
    case 'FieldValueRequired':
      return requiredValue(field, detail)
    case 'FieldValueDuplicate':
      return isWhole ? { reason, message: 'Duplicate value', field } : duplicateValue(field, value)
    default:
      // A whole object would make the message long and tell what may be secret.
      return isWhole ? { reason: 'FieldValueInvalid', message: `Invalid value: ${detail}`, field } : invalidValue(field, value, detail)
  }
}
