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
  /** Failed rules on unchanged values, which do not reject the object. */
  readonly warnings: string[]
}

/** The cost limit of all rules of one object, about 50 ms: the longest time for which a write delays others. */
const costLimit = 1_000_000
/** The cost of running a rule in addition to its expression, and of reporting its failure. */
const costPerRule = 20
const costPerFailure = 100
const maxCauses = 200
const maxWarnings = 50
const maxMessageBytes = 5 * 1024

/**
 * Evaluates the `x-kubernetes-validations` of a schema, at every depth, on a whole object that is valid by the schema.
 * @param oldValue the stored object: transition rules (those with `oldSelf`) run only where an old value correlates, that is,
 * not below items of lists other than those of type map. A rule that fails on an unchanged value gives a warning.
 */
export function checkRules(schema: StructuralSchema, value: unknown, oldValue: unknown): RuleResult {
  const result: RuleResult = { causes: [], warnings: [] }
  const tree = rulesOf(schema)
  if (tree)
    new RuleChecker(result).check(tree, value, '', oldValue, oldValue === undefined ? undefined : { value, old: oldValue }, undefined)
  return result
}

/** A value and the stored value that correlates with it. */
type Pair = { readonly value: unknown; readonly old: unknown; isSame?: boolean }

function isSame(pair: Pair | undefined): boolean {
  if (!pair) return false
  pair.isSame ??= equalJson(pair.value, pair.old)
  return pair.isSame
}

class RuleChecker {
  readonly #result: RuleResult
  #remainingCost = costLimit

  constructor(result: RuleResult) {
    this.#result = result
  }

  /**
   * Returns false if the cost limit is exceeded or there are too many causes; nothing more is checked then.
   * @param old the value of `oldSelf`; undefined if none correlates.
   * @param pair this value and its old one; undefined if none correlates.
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
    const reject = (why: string) => this.#result.causes.push(invalidValue(field, type, why))
    // Converted once for all rules: parts are converted on access.
    let self: Value | undefined
    let oldSelf: Value | undefined
    const readSelf = () => (self ??= toValue(value, seen))
    const readOldSelf = () => (oldSelf ??= toValue(old, seen))
    for (const { rule, program, message, usesOldSelf, fieldPath } of rules) {
      if (usesOldSelf && old === undefined && !rule.optionalOldSelf) continue
      if (typeof program === 'string') {
        reject(`rule compile error: ${program}`)
        continue
      }
      const read = (): Value[] => {
        const before = usesOldSelf && old !== undefined ? readOldSelf() : undefined
        return [readSelf(), rule.optionalOldSelf ? (before === undefined ? Optional.none : new Optional(before)) : (before ?? null)]
      }
      const outcome = this.#run(program, read)
      const ruleText = rule.message?.trim() || rule.rule.trim()
      if (outcome instanceof CostLimitExceededError) {
        const why = `'${outcome.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${ruleText}`
        const isFirst = this.#remainingCost === costLimit
        reject(isFirst ? why : 'validation failed due to running out of cost budget, no further validation rules will be run')
        return false
      }
      if (outcome === true) continue
      if (outcome instanceof CelError) {
        const isOverload = outcome.message.startsWith('no such overload')
        reject(
          isOverload
            ? `'${outcome.message}': call arguments did not match a supported operator, function or macro signature for rule: ${ruleText}`
            : `${outcome.message} evaluating rule: ${ruleText}`,
        )
        continue
      }
      const detail = this.#message(message, read, rule)
      const at = fieldPath === '' ? field : path === '' ? fieldPath : `${path}.${fieldPath}`
      const cause = causeFor(at, value, detail ?? 'messageExpression evaluation failed due to running out of cost budget', rule.reason)
      this.#remainingCost -= costPerFailure
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
      const { result, remaining } = withCostLimit(this.#remainingCost, () => {
        chargeCost(costPerRule)
        return program.run(read())
      })
      if (result === undefined) return new CostLimitExceededError('operation cancelled: actual cost limit exceeded')
      this.#remainingCost = remaining
      return result
    } catch (error) {
      if (error instanceof CelError) return error
      throw error
    }
  }

  /** The message of a failed rule; undefined if the cost limit is exceeded. */
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

/** Finds the old item that correlates with a new one: that with the same keys in lists of type map, none in others. */
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
      // A whole object would make the message long and may contain secrets.
      return isWhole ? { reason: 'FieldValueInvalid', message: `Invalid value: ${detail}`, field } : invalidValue(field, value, detail)
  }
}
