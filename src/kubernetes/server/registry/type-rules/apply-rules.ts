import { getOwn, isJsonObject, type KubeObject, requiredValue, type StatusCause, setOwn, unsupportedValue } from '../../../object/index.ts'
import type { TypeSchema } from '../schemas/index.ts'
import { ruleTable } from './rule-table.ts'
import type { Fields, TypeRules } from './type-rules.ts'

/** Returns `value` with the defaults of its type and of nested types. The argument is not changed. */
export function fillDefaults(schema: TypeSchema, value: unknown): unknown {
  if (!ruleUseOf(schema).fills || typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return mapUnlessEqual(value, item => fillDefaults(schema.items!, item))
  const result: Fields = { ...value }
  for (const [field, defaultValue] of schema.defaults ?? []) result[field] ??= defaultValue
  const rules = rulesOf(schema)
  for (const [field, defaultValue] of Object.entries(rules?.defaults ?? {})) result[field] ??= defaultValue
  rules?.setDefaults?.(result)
  for (const name of Object.keys(result)) {
    const child = getOwn(schema.properties, name) ?? schema.additionalProperties
    if (child) setOwn(result, name, fillDefaults(child, result[name]))
  }
  return result
}

/** The validation errors of `object` by the rules of its types. Its status is written by controllers and not validated here. */
export function ruleErrors(schema: TypeSchema, object: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  const causes: StatusCause[] = []
  const visit = (partSchema: TypeSchema, value: unknown, path: string): void => {
    if (!ruleUseOf(partSchema).checks || value === undefined || value === null) return
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) visit(partSchema.items!, value[index], `${path}[${index}]`)
      return
    }
    if (!isJsonObject(value)) return
    const rules = rulesOf(partSchema)
    for (const [field, reason] of Object.entries(rules?.required ?? {})) {
      if (isMissing(value[field])) causes.push(requiredValue(join(path, field), reason))
    }
    if (rules?.validate) causes.push(...rules.validate(value, { path, object, oldObject }))
    for (const name of Object.keys(value)) {
      if (path === '' && name === 'status') continue
      const { properties } = partSchema
      const child = getOwn(properties, name) ?? partSchema.additionalProperties
      if (!child) continue
      const fieldPath = properties ? join(path, name) : `${path}[${name}]`
      const allowed = child.enum ?? child.items?.enum
      if (allowed && !rules?.uncheckedEnums?.includes(name))
        causes.push(...enumErrors(fieldPath, value[name], rules?.enumOrder?.[name] ?? allowed))
      visit(child, value[name], fieldPath)
    }
  }
  visit(schema, object, '')
  return causes
}

function enumErrors(path: string, value: unknown, allowed: readonly unknown[]): StatusCause[] {
  // Kubernetes reports the value of the invalid list item, but not its index.
  return [value]
    .flat()
    .filter(item => !isMissing(item) && !allowed.includes(item))
    .map(item => unsupportedValue(path, item, allowed))
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

const join = (path: string, field: string) => (path === '' ? field : `${path}.${field}`)

function mapUnlessEqual(list: unknown[], convert: (item: unknown) => unknown): unknown[] {
  const converted = list.map(convert)
  return converted.every((item, index) => item === list[index]) ? list : converted
}

function rulesOf({ typeName }: TypeSchema): TypeRules | undefined {
  return typeName === undefined ? undefined : ruleTable().get(typeName)
}

type RuleUse = { readonly fills: boolean; readonly checks: boolean }

const noRules: RuleUse = { fills: false, checks: false }
const ruleUses = new WeakMap<TypeSchema, RuleUse>()

/** Whether a schema or a nested one has rules: most parts of an object need no visit. */
function ruleUseOf(schema: TypeSchema): RuleUse {
  let use = ruleUses.get(schema)
  if (use) return use
  ruleUses.set(schema, noRules)
  const rules = rulesOf(schema)
  let fills = Boolean(rules?.defaults || rules?.setDefaults || schema.defaults)
  let checks = Boolean(rules?.validate || rules?.required || schema.enum)
  for (const nestedSchema of [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties]) {
    if (!nestedSchema) continue
    const nested = ruleUseOf(nestedSchema)
    fills ||= nested.fills
    checks ||= nested.checks
  }
  use = { fills, checks }
  ruleUses.set(schema, use)
  return use
}
