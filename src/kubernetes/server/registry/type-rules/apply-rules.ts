import { getOwn, isJsonObject, type KubeObject, requiredValue, type StatusCause, setOwn, unsupportedValue } from '../../../object/index.ts'
import type { TypeSchema } from '../schemas/index.ts'
import { ruleTable } from './rule-table.ts'
import type { Fields, TypeRules } from './type-rules.ts'

/** Returns `value` with the defaults of its type and of nested types. The argument is not changed. */
export function fillDefaults(schema: TypeSchema, value: unknown): unknown {
  if (!concerns(schema).fills || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return mapped(value, item => fillDefaults(schema.items!, item))
  const result: Fields = { ...value }
  for (const [field, preset] of schema.defaults ?? []) result[field] ??= preset
  const rules = rulesOf(schema)
  for (const [field, preset] of Object.entries(rules?.defaults ?? {})) result[field] ??= preset
  rules?.setDefaults?.(result)
  for (const name of Object.keys(result)) {
    const child = getOwn(schema.properties, name) ?? schema.additionalProperties
    if (child) setOwn(result, name, fillDefaults(child, result[name]))
  }
  return result
}

/** The validation errors of `object` by the rules of its types. Its status is written by controllers and not validated here. */
export function ruleErrors(schema: TypeSchema, object: KubeObject, before: KubeObject | undefined): StatusCause[] {
  const causes: StatusCause[] = []
  const visit = (part: TypeSchema, value: unknown, path: string): void => {
    if (!concerns(part).checks || value === undefined || value === null) return
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) visit(part.items!, value[index], `${path}[${index}]`)
      return
    }
    if (!isJsonObject(value)) return
    const rules = rulesOf(part)
    for (const [field, reason] of Object.entries(rules?.required ?? {})) {
      if (isMissing(value[field])) causes.push(requiredValue(join(path, field), reason))
    }
    if (rules?.validate) causes.push(...rules.validate(value, { path, object, before }))
    for (const name of Object.keys(value)) {
      if (path === '' && name === 'status') continue
      const { properties } = part
      const child = getOwn(properties, name) ?? part.additionalProperties
      if (!child) continue
      const at = properties ? join(path, name) : `${path}[${name}]`
      const words = child.enum ?? child.items?.enum
      if (words && !rules?.uncheckedEnums?.includes(name)) causes.push(...wordErrors(at, value[name], rules?.enumOrder?.[name] ?? words))
      visit(child, value[name], at)
    }
  }
  visit(schema, object, '')
  return causes
}

function wordErrors(path: string, value: unknown, words: readonly unknown[]): StatusCause[] {
  // Kubernetes reports the value of the invalid list item, but not its index.
  return [value]
    .flat()
    .filter(word => !isMissing(word) && !words.includes(word))
    .map(word => unsupportedValue(path, word, words))
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

const join = (path: string, field: string) => (path === '' ? field : `${path}.${field}`)

function mapped(list: unknown[], change: (item: unknown) => unknown): unknown[] {
  const next = list.map(change)
  return next.every((item, index) => item === list[index]) ? list : next
}

function rulesOf({ typeName }: TypeSchema): TypeRules | undefined {
  return typeName === undefined ? undefined : ruleTable().get(typeName)
}

type Concerns = { readonly fills: boolean; readonly checks: boolean }

const nothing: Concerns = { fills: false, checks: false }
const known = new WeakMap<TypeSchema, Concerns>()

/** Whether a schema or a nested one has rules: most parts of an object need no visit. */
function concerns(schema: TypeSchema): Concerns {
  let found = known.get(schema)
  if (found) return found
  known.set(schema, nothing)
  const rules = rulesOf(schema)
  let fills = Boolean(rules?.defaults || rules?.setDefaults || schema.defaults)
  let checks = Boolean(rules?.validate || rules?.required || schema.enum)
  for (const part of [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties]) {
    if (!part) continue
    const within = concerns(part)
    fills ||= within.fills
    checks ||= within.checks
  }
  found = { fills, checks }
  known.set(schema, found)
  return found
}
