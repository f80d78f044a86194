import {
  badRequest,
  formatQuantity,
  getOwn,
  hasStringFormat,
  isJsonObject,
  parseQuantity,
  type StatusError,
  setOwn,
} from '../../../object/index.ts'
import type { TypeSchema } from './type-schema.ts'

/** The kind and version of the decoded object, for error messages. */
export type DecodedKind = { kind: string; version: string }

/**
 * Converts `value` to the JSON of the Go struct of its type, which is what clients of Kubernetes read back: null and empty values are
 * omitted unless the field is a pointer, structs are present even when empty, quantities and times are canonical. Defaults are not set.
 * Parts that need no conversion are shared with `value`, which is not changed.
 * @param path the path of `value` in its object; empty for the whole object.
 * @throws {StatusError} BadRequest, with the message of Go's decoder, for a value of the wrong type.
 */
export function goForm(schema: TypeSchema, value: unknown, of: DecodedKind, path: readonly string[] = []): unknown {
  return new Former(of, path).form(schema, value, of.kind)
}

class Former {
  readonly #of: DecodedKind
  readonly #path: string[]

  constructor(of: DecodedKind, path: readonly string[]) {
    this.#of = of
    this.#path = [...path]
  }

  form(schema: TypeSchema, value: unknown, struct: string): unknown {
    if (schema.form === 'quantity') return this.#quantity(value)
    if (schema.form === 'micro-time') return this.#time(schema, value, struct, 6)
    if (schema['x-kubernetes-int-or-string']) {
      if (typeof value === 'string' || (Number.isInteger(value) && isInt32(value as number))) return value
      throw this.#mismatch(value, 'intstr.IntOrString', struct)
    }
    switch (schema.type) {
      case 'string':
        if (typeof value !== 'string') throw this.#mismatch(value, 'string', struct)
        if (schema.format === 'date-time') return this.#time(schema, value, struct, 0)
        if (schema.format === 'byte' && !hasStringFormat(value, 'byte'))
          throw this.#invalid(`illegal base64 data at input byte ${firstIllegal(value)}`)
        return value
      case 'boolean':
        if (typeof value !== 'boolean') throw this.#mismatch(value, 'bool', struct)
        return value
      case 'integer':
        if (!Number.isInteger(value) || (schema.format === 'int32' && !isInt32(value as number)))
          throw this.#mismatch(value, schema.format ?? 'int64', struct)
        return value
      case 'number':
        if (typeof value !== 'number') throw this.#mismatch(value, 'float64', struct)
        return value
      case 'array':
        if (!Array.isArray(value)) throw this.#mismatch(value, goType(schema), struct)
        return this.#list(schema, value, struct)
      case 'object':
        if (!isJsonObject(value)) throw this.#mismatch(value, goType(schema), struct)
        return schema.properties ? this.#struct(schema, value) : schema.additionalProperties ? this.#map(schema, value, struct) : value
    }
    return value
  }

  #list({ items }: TypeSchema, list: unknown[], struct: string): unknown[] {
    if (!items) return list
    let result: unknown[] | undefined
    for (let index = 0; index < list.length; index++) {
      const item = list[index]
      const next = this.form(items, item ?? zeroOf(items), struct)
      if (next === item) continue
      result ??= list.slice()
      result[index] = next
    }
    return result ?? list
  }

  #map({ additionalProperties: schema }: TypeSchema, map: Record<string, unknown>, struct: string): Record<string, unknown> {
    let result: Record<string, unknown> | undefined
    for (const key of Object.keys(map)) {
      const value = map[key]
      const next = this.form(schema!, value ?? zeroOf(schema!), struct)
      if (next === value) continue
      result ??= { ...map }
      setOwn(result, key, next)
    }
    return result ?? map
  }

  #struct(schema: TypeSchema, object: Record<string, unknown>): Record<string, unknown> {
    const { properties, pointers, zeros } = schema
    const struct = schema.typeName?.slice(schema.typeName.lastIndexOf('.') + 1) ?? ''
    let result: Record<string, unknown> | undefined
    for (const field of Object.keys(object)) {
      const property = getOwn(properties, field)
      if (property === undefined) continue
      const value = object[field]
      let next: unknown
      if (value !== null && value !== undefined) {
        this.#path.push(field)
        next = this.form(property, value, struct)
        this.#path.pop()
        if (isEmpty(property, next) && !pointers?.has(field)) next = undefined
      }
      if (next === value) continue
      result ??= { ...object }
      if (next === undefined) delete result[field]
      else setOwn(result, field, next)
    }
    for (const [field, zero] of zeros ?? []) {
      if ((result ?? object)[field] !== undefined) continue
      result ??= { ...object }
      result[field] = isJsonObject(zero) ? this.form(properties![field]!, {}, struct) : zero
    }
    return result ?? object
  }

  #quantity(value: unknown): string {
    const text = typeof value === 'number' ? String(value) : value
    if (typeof text !== 'string') {
      throw this.#invalid("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    }
    if (plainQuantity.test(text)) return text
    try {
      return formatQuantity(parseQuantity(text))
    } catch {
      throw this.#invalid("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    }
  }

  #time(schema: TypeSchema, value: unknown, struct: string, digits: 0 | 6): string {
    if (typeof value !== 'string') throw this.#mismatch(value, schema.form === 'micro-time' ? 'v1.MicroTime' : 'v1.Time', struct)
    if ((digits === 0 ? plainTime : plainMicroTime).test(value) && hasStringFormat(value, 'date-time')) return value
    const [, local, fraction = '', zone, hours = '0', minutes = '0'] = rfc3339Time.exec(value) ?? []
    const offsetMinutes = Number(hours) * 60 + Number(minutes)
    const isTime = local !== undefined && hasStringFormat(`${local}Z`, 'date-time') && Number(hours) <= 24 && Number(minutes) <= 60
    const utc = isTime ? new Date(Date.parse(`${local}Z`) - (zone?.startsWith('-') ? -offsetMinutes : offsetMinutes) * 60_000) : undefined
    const seconds = utc?.toISOString().slice(0, -5)
    // Outside the years 0 to 9999.
    if (seconds?.length !== 19)
      throw this.#invalid(`parsing time ${JSON.stringify(value.slice(0, 80))} as RFC 3339: it must look like 2006-01-02T15:04:05Z`)
    return digits === 0 ? `${seconds}Z` : `${seconds}.${fraction.slice(0, digits).padEnd(digits, '0')}Z`
  }

  #mismatch(value: unknown, desired: string, struct: string): StatusError {
    return this.#invalid(
      `json: cannot unmarshal ${formatGoJson(value)} into Go struct field ${struct}.${this.#path.join('.')} of type ${desired}`,
    )
  }

  #invalid(reason: string): StatusError {
    const { kind, version } = this.#of
    return badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${reason}`)
  }
}

/** Quantities that are canonical already. */
const plainQuantity = /^[1-9]\d{0,2}(m|k|M|G|Ki|Mi|Gi)?$|^0$/
const plainTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/
/** As Go parses it: an offset may have 24 hours and 60 minutes. */
const rfc3339Time = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-](\d\d):(\d\d))$/
const plainMicroTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d\.\d{6}Z$/

const isInt32 = (value: number) => value === (value | 0)

/** Whether Go omits the value of a field with `omitempty`; structs are never empty. */
function isEmpty(schema: TypeSchema, value: unknown): boolean {
  if (value === '' || value === 0 || value === false) return schema['x-kubernetes-int-or-string'] !== true
  if (Array.isArray(value)) return value.length === 0
  return schema.properties === undefined && isJsonObject(value) && Object.keys(value).length === 0
}

function zeroOf(schema: TypeSchema): unknown {
  switch (schema.type) {
    case 'string':
      return ''
    case 'boolean':
      return false
    case 'integer':
    case 'number':
      return 0
    case 'array':
      return []
    case 'object':
      return {}
    default:
      return schema.form === 'quantity' ? '0' : 0
  }
}

function goType({ type, items, additionalProperties, typeName }: TypeSchema): string {
  if (type === 'array') return `[]${items ? goType(items) : 'interface {}'}`
  if (additionalProperties) return `map[string]${goType(additionalProperties)}`
  if (typeName) return typeName.replace(/^.*\.(v\d\w*\.)/, '$1')
  return type === 'boolean' ? 'bool' : type === 'integer' ? 'int32' : (type ?? 'resource.Quantity')
}

function formatGoJson(value: unknown): string {
  if (Array.isArray(value)) return 'array'
  if (typeof value === 'number') return Number.isInteger(value) && isInt32(value) ? 'number' : `number ${value}`
  return typeof value === 'boolean' ? 'bool' : typeof value
}

function firstIllegal(text: string): number {
  const at = text.search(/[^A-Za-z0-9+/=]/)
  return at < 0 ? text.length : at
}
