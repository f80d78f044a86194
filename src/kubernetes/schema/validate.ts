import { withCostLimit } from '../object/cost-limit.ts'
import { duplicateValue, invalidType, invalidValue, requiredValue, tooLong, tooMany, unsupportedValue } from '../object/field-cause.ts'
import { compileGoRegexp } from '../object/go-regexp.ts'
import { equalJson, getOwn, isJsonObject, stableJson } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import { hasStringFormat } from '../object/string-format.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'

export type ValidateOptions = {
  /** The stored value: unchanged parts are not rejected, even if the schema became stricter (ratcheting). */
  oldValue?: unknown
}

/** A hostile object can violate every rule; more causes than this are of no use. */
const maxCauses = 200
/** The cost limit (see `cost-limit.ts`) of all patterns of one object: about 50 ms in the worst case, and 3 MB of text otherwise. */
const patternCostLimit = 2_000_000
/**
 * Values that may be compared with a schema for one object, all alternatives of anyOf, oneOf, allOf and not included: five for each field of
 * the largest object. More takes longer than 0.1 s.
 */
const maxChecks = 500_000
/** A part of anyOf, oneOf, allOf or not costs as much as this many values. */
const checksPerPart = 5

type Budget = { checks: number; patternCost: number }

/**
 * Why `value` does not match `schema`, in Kubernetes' words; empty if it does. `path` is the field of the value, empty for
 * a whole object, whose apiVersion, kind and metadata the caller validates.
 */
export function validateSchema(schema: StructuralSchema, value: unknown, path: string, options: ValidateOptions = {}): StatusCause[] {
  const budget: Budget = { checks: maxChecks, patternCost: patternCostLimit }
  const causes = validateWithin(budget, schema, value, path, options.oldValue)
  if (budget.checks >= 0) return causes
  const why = `could not be validated: its schema has too many alternatives for ${maxChecks} checks`
  return [invalidValue(path || '<root>', '', why)]
}

function validateWithin(budget: Budget, schema: StructuralSchema, value: unknown, path: string, oldValue?: unknown): StatusCause[] {
  const validator = new Validator(path, budget)
  validator.check(schema, value, oldValue)
  return validator.causes.length > maxCauses ? validator.causes.slice(0, maxCauses) : validator.causes
}

class Validator {
  readonly causes: StatusCause[] = []
  readonly #budget: Budget
  readonly #base: string
  // Paths are joined only for errors: most values are valid.
  readonly #segments: (string | number)[] = []

  constructor(base: string, budget: Budget) {
    this.#base = base
    this.#budget = budget
  }

  check(schema: StructuralSchema, value: unknown, oldValue: unknown): void {
    if (this.causes.length > maxCauses || --this.#budget.checks < 0) return
    // An error would not be reported. A patch shares what it does not change with the stored object.
    if (value === oldValue && oldValue !== undefined) return
    const before = this.causes.length
    this.#checkValue(schema, value, oldValue)
    if (oldValue !== undefined && this.causes.length > before && equalJson(value, oldValue)) this.causes.length = before
  }

  #checkValue(schema: StructuralSchema, value: unknown, oldValue: unknown): void {
    if (value === null && schema.nullable === true) {
      this.#checkEnum(schema, value)
      return
    }
    if (!this.#checkType(schema, value)) return
    this.#checkEnum(schema, value)
    if (typeof value === 'string') this.#checkString(schema, value)
    else if (typeof value === 'number') this.#checkNumber(schema, value)
    else if (Array.isArray(value)) this.#checkArray(schema, value, oldValue)
    else if (isJsonObject(value)) this.#checkObject(schema, value, oldValue)
    if (schema.allOf || schema.anyOf || schema.oneOf || schema.not) this.#checkJunctors(schema, value)
  }

  #checkEnum(schema: StructuralSchema, value: unknown): void {
    if (schema.enum !== undefined && !isAllowed(schema.enum, value)) {
      this.causes.push(unsupportedValue(this.#path(), value, schema.enum))
    }
  }

  #checkType(schema: StructuralSchema, value: unknown): boolean {
    if (schema['x-kubernetes-int-or-string']) {
      if (typeof value === 'string' || Number.isInteger(value)) return true
      return this.#rejectType('integer,string', jsonType(value))
    }
    switch (schema.type) {
      case undefined:
        return true
      case 'string':
        return typeof value === 'string' || this.#rejectType('string', jsonType(value))
      case 'boolean':
        return typeof value === 'boolean' || this.#rejectType('boolean', jsonType(value))
      case 'integer':
        return Number.isInteger(value) || this.#rejectType('integer', jsonType(value))
      case 'number':
        return typeof value === 'number' || this.#rejectType('number', jsonType(value))
      case 'array':
        return Array.isArray(value) || this.#rejectType('array', jsonType(value))
      case 'object':
        return isJsonObject(value) || this.#rejectType('object', jsonType(value))
    }
  }

  #rejectType(wanted: string, got: string): false {
    const path = this.#path()
    this.causes.push(invalidType(path, got, `${path || '<root>'} in body must be of type ${wanted}: ${JSON.stringify(got)}`))
    return false
  }

  #checkString(schema: StructuralSchema, value: string): void {
    const { format } = schema
    // Kubernetes reports only the first error of length and pattern.
    if (this.#hasText(schema, value) && format !== undefined && !hasStringFormat(value, format)) {
      const path = this.#path()
      this.causes.push(invalidType(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`))
    }
  }

  #hasText({ minLength, maxLength, pattern }: StructuralSchema, value: string): boolean {
    const before = this.causes.length
    if (minLength !== undefined || maxLength !== undefined) {
      // Kubernetes counts code points. The code units bound them, so that most strings need no counting.
      const length = value.length <= (maxLength ?? 0) && value.length >= 2 * (minLength ?? 0) ? value.length : codePoints(value)
      if (maxLength !== undefined && length > maxLength) this.causes.push(tooLong(this.#path(), maxLength))
      else if (minLength !== undefined && length < minLength) this.#reject(value, `should be at least ${minLength} chars long`)
    }
    if (this.causes.length === before && pattern !== undefined) this.#checkPattern(pattern, value)
    return this.causes.length === before
  }

  #checkPattern(pattern: string, value: string): void {
    const expression = compileGoRegexp(pattern)
    if (!expression) return
    const { result, remaining } = withCostLimit(this.#budget.patternCost, () => expression.test(value))
    if (remaining < 0) {
      // The value is too long to be worth quoting; the pattern is quoted instead.
      const why = `could not be matched against '${pattern.slice(0, 200)}': the strings of this object are too long for its patterns`
      this.causes.push(invalidValue(this.#path(), `${value.slice(0, 20)}…`, why))
      return
    }
    this.#budget.patternCost = remaining
    if (!result) this.#reject(value, `should match '${pattern}'`)
  }

  #checkNumber(schema: StructuralSchema, value: number): void {
    const { minimum, maximum, multipleOf, format } = schema
    if (minimum !== undefined) {
      if (schema.exclusiveMinimum ? value <= minimum : value < minimum) {
        this.#reject(value, `should be greater than ${schema.exclusiveMinimum ? '' : 'or equal to '}${minimum}`)
      }
    }
    if (maximum !== undefined) {
      if (schema.exclusiveMaximum ? value >= maximum : value > maximum) {
        this.#reject(value, `should be less than ${schema.exclusiveMaximum ? '' : 'or equal to '}${maximum}`)
      }
    }
    if (multipleOf !== undefined && !isMultiple(value, multipleOf)) this.#reject(value, `should be a multiple of ${multipleOf}`)
    if (format === 'int32' && schema.type === 'integer' && value !== (value | 0)) {
      this.causes.push(invalidValue(this.#path(), value, `Checked value must be of type integer with format int32 (${this.#path()})`))
    }
  }

  #checkArray(schema: StructuralSchema, value: unknown[], oldValue: unknown): void {
    const { minItems, maxItems, items } = schema
    if (minItems !== undefined && value.length < minItems) this.#reject(value, `should have at least ${minItems} items`)
    if (maxItems !== undefined && value.length > maxItems) {
      this.causes.push(tooMany(this.#path(), value.length, maxItems))
      return
    }
    const listType = schema['x-kubernetes-list-type']
    const keys = listType === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : undefined
    const keyOf = keys ? (item: unknown) => listKey(item, keys) : listType === 'set' || schema.uniqueItems ? stableJson : undefined
    const oldByKey = keys && keyOf && Array.isArray(oldValue) ? new Map(oldValue.map(item => [keyOf(item), item])) : undefined
    const seen = keyOf && new Set<string>()
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      const key = keyOf?.(item)
      this.#segments.push(index)
      if (items) this.check(items, item, key === undefined ? undefined : oldByKey?.get(key))
      if (seen && key !== undefined) {
        if (seen.has(key)) this.causes.push(duplicateValue(this.#path(), keys ? pick(item, keys) : item))
        seen.add(key)
      }
      this.#segments.pop()
    }
  }

  #checkObject(schema: StructuralSchema, value: Record<string, unknown>, oldValue: unknown): void {
    const { properties, additionalProperties, required, minProperties, maxProperties } = schema
    const old = isJsonObject(oldValue) ? oldValue : undefined
    if (required) {
      for (const name of required) {
        if (getOwn(value, name) === undefined) this.causes.push(requiredValue(this.#child(name)))
      }
    }
    const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
    if (isEmbedded) {
      for (const name of ['apiVersion', 'kind']) {
        const got = getOwn(value, name)
        if (got === undefined || got === '') this.causes.push(requiredValue(this.#child(name)))
      }
    }
    const names = Object.keys(value)
    if (minProperties !== undefined && names.length < minProperties) this.#reject(value, `should have at least ${minProperties} properties`)
    if (maxProperties !== undefined && names.length > maxProperties) {
      this.causes.push(tooMany(this.#path(), names.length, maxProperties))
      return
    }
    const rest = typeof additionalProperties === 'object' ? additionalProperties : undefined
    if (properties === undefined && rest === undefined) return
    for (const name of names) {
      const child = value[name]
      const childSchema = getOwn(properties, name) ?? rest
      if (childSchema === undefined || child === undefined) continue
      this.#segments.push(name)
      this.check(childSchema, child, old && getOwn(old, name))
      this.#segments.pop()
    }
  }

  #checkJunctors(schema: StructuralSchema, value: unknown): void {
    const path = this.#path()
    const errorsOf = (part: StructuralSchema) => {
      this.#budget.checks -= checksPerPart
      return validateWithin(this.#budget, part, value, path)
    }
    const reject = (why: string) => this.causes.push(invalidValue(path, '', `${JSON.stringify(path)} must ${why}`))
    const { allOf, anyOf, oneOf, not } = schema
    if (anyOf?.length) {
      const failures = failuresUntilMatch(anyOf, errorsOf)
      if (failures) {
        reject('validate at least one schema (anyOf)')
        this.causes.push(...fewest(failures))
      }
    }
    if (oneOf?.length) {
      const failures = oneOf.map(errorsOf)
      const matching = failures.filter(causes => causes.length === 0).length
      if (matching === 0) {
        reject('validate one and only one schema (oneOf). Found none valid')
        this.causes.push(...fewest(failures))
      } else if (matching > 1) reject(`validate one and only one schema (oneOf). Found ${matching} valid alternatives`)
    }
    if (allOf?.length) {
      const failures = allOf.map(errorsOf).filter(causes => causes.length > 0)
      if (failures.length > 0) {
        this.causes.push(...failures.flat())
        reject(`validate all the schemas (allOf)${failures.length === allOf.length ? '. None validated' : ''}`)
      }
    }
    if (not && errorsOf(not).length === 0) reject('not validate the schema (not)')
  }

  #reject(value: unknown, why: string): void {
    const path = this.#path()
    this.causes.push(invalidValue(path, value, `${path} in body ${why}`))
  }

  #child(name: string): string {
    const path = this.#path()
    return path === '' ? name : `${path}.${name}`
  }

  #path(): string {
    let path = this.#base
    for (const segment of this.#segments) {
      if (typeof segment === 'number') path += `[${segment}]`
      else path = path === '' ? segment : `${path}.${segment}`
    }
    return path
  }
}

const scalarsByEnum = new WeakMap<unknown[], ReadonlySet<unknown>>()

/** Scalars are looked up: a list of many values may have an enum of many values. */
function isAllowed(allowed: unknown[], value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return allowed.some(other => equalJson(other, value))
  let scalars = scalarsByEnum.get(allowed)
  if (scalars === undefined) {
    scalars = new Set(allowed)
    scalarsByEnum.set(allowed, scalars)
  }
  return scalars.has(value)
}

function failuresUntilMatch(parts: StructuralSchema[], errorsOf: (part: StructuralSchema) => StatusCause[]): StatusCause[][] | undefined {
  const failures: StatusCause[][] = []
  for (const part of parts) {
    const causes = errorsOf(part)
    if (causes.length === 0) return undefined
    failures.push(causes)
  }
  return failures
}

function fewest(failures: StatusCause[][]): StatusCause[] {
  return failures.reduce((best, causes) => (causes.length < best.length ? causes : best))
}

function jsonType(value: unknown): string {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value === 'number' && Number.isInteger(value) ? 'integer' : typeof value
}

function codePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

// 0.3 is meant to be a multiple of 0.1, although the binary fractions are not.
function isMultiple(value: number, of: number): boolean {
  const ratio = value / of
  return Number.isInteger(ratio) || Math.abs(ratio - Math.round(ratio)) < 1e-9 * Math.max(1, Math.abs(ratio))
}

function pick(item: unknown, keys: string[]): Record<string, unknown> {
  if (!isJsonObject(item)) return {}
  return Object.fromEntries(keys.flatMap(key => (Object.hasOwn(item, key) ? [[key, item[key]]] : [])))
}

function listKey(item: unknown, keys: string[]): string | undefined {
  if (!isJsonObject(item)) return undefined
  if (keys.length === 1) return stableJson(getOwn(item, keys[0]!) ?? null)
  return JSON.stringify(keys.map(key => getOwn(item, key) ?? null))
}
