import { chargeCost } from '../object/cost-limit.ts'
import { equalJson, getOwn, isJsonObject } from '../object/json.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { escapeField, unescapeField } from './escape.ts'
import { parseGoDuration, parseTimestamp } from './functions/conversions.ts'
import { asResource, childSchema } from './schema-types.ts'
import { ArrayListValue, CelError, equal, ListValue, MapValue, noSuchOverload, type Timestamp, type Value } from './values.ts'

/**
 * Converts a part of an object into a CEL value. Lists and maps are not copied: their parts are converted on access.
 * @throws {CelError} for a value that does not match the schema, as old values may.
 */
export function toValue(json: unknown, schema: StructuralSchema): Value {
  if (json === null || json === undefined) {
    if (schema.nullable === true) return null
    throw new CelError('invalid data, got null for schema with nullable=false')
  }
  if (schema['x-kubernetes-int-or-string']) {
    if (typeof json === 'string') return json
    if (Number.isInteger(json)) return BigInt(json as number)
    throw new CelError('invalid data, expected XIntOrString value to be either a string or integer')
  }
  switch (schema.type) {
    case 'object':
      if (!isJsonObject(json)) throw new CelError('invalid data, expected a map for the provided schema with type=object')
      return new SchemaMap(json, schema['x-kubernetes-embedded-resource'] ? asResource(schema) : schema)
    case 'array':
      if (!Array.isArray(json)) throw new CelError('invalid data, expected an array for the provided schema with type=array')
      return new SchemaList(json, schema)
    case 'string':
      if (typeof json !== 'string') throw new CelError(`invalid data, expected string, got ${typeof json}`)
      return toText(json, schema.format)
    case 'integer':
      if (!Number.isInteger(json)) throw new CelError(`invalid data, expected int, got ${typeof json}`)
      return BigInt(json as number)
    case 'number':
      if (typeof json !== 'number') throw new CelError(`invalid data, expected float, got ${typeof json}`)
      return json
    case 'boolean':
      if (typeof json !== 'boolean') throw new CelError(`invalid data, expected bool, got ${typeof json}`)
      return json
    case undefined:
      return new UnknownValue(json)
  }
}

const dayUnits: Record<string, string> = { nanosecond: 'ns', microsecond: 'us', millisecond: 'ms', second: 's', minute: 'm', hour: 'h' }

function toText(text: string, format: string | undefined): Value {
  switch (format) {
    case 'duration': {
      // The format also allows `3 days`.
      const [, amount, unit = ''] = /^(\d{1,12}) ?([a-z]+?)s?$/.exec(text) ?? []
      if (amount !== undefined && unit === 'day') return parseGoDuration(`${BigInt(amount) * 24n}h`)
      if (amount !== undefined && unit === 'week') return parseGoDuration(`${BigInt(amount) * 168n}h`)
      return parseGoDuration(amount !== undefined && dayUnits[unit] ? amount + dayUnits[unit] : text)
    }
    case 'date':
      return parseTimestamp(`${text}T00:00:00Z`)
    case 'date-time':
      return timestampOf(text)
    case 'byte':
      chargeCost(text.length >> 4)
      return new Uint8Array(Buffer.from(text, 'base64'))
    default:
      return text
  }
}

let last: { readonly text: string; readonly timestamp: Timestamp } | undefined

/** Rules compare a time with the stored one, which is mostly the same. */
function timestampOf(text: string): Timestamp {
  if (last?.text !== text) last = { text, timestamp: parseTimestamp(text) }
  return last.timestamp
}

/**
 * Whether {@link equal} finds a value equal to itself: a patch shares what it does not change with the stored object, and rules compare it. The parts
 * are converted as they are to be compared, so that invalid ones have the same errors, but lists and maps are not created.
 */
function equalsItself(json: unknown, schema: StructuralSchema): boolean {
  if (schema['x-kubernetes-int-or-string'] === undefined) {
    if (schema.type === 'object' && isJsonObject(json))
      return areEqualToThemselves(json, schema['x-kubernetes-embedded-resource'] ? asResource(schema) : schema)
    if (schema.type === 'array' && Array.isArray(json) && schema['x-kubernetes-list-type'] === undefined) {
      const item = schema.items ?? {}
      chargeCost(json.length)
      return json.every(part => equalsItself(part, item))
    }
  }
  const value = toValue(json, schema)
  // A set or a map may have duplicates.
  return schema.type !== 'array' || equal(value, toValue(json, schema))
}

function areEqualToThemselves(json: Record<string, unknown>, schema: StructuralSchema): boolean {
  for (const name of Object.keys(json)) {
    chargeCost(1)
    const child = childSchema(schema, name)
    if (!child || (json[name] === null && schema.properties !== undefined)) continue
    if (!equalsItself(json[name], child)) return false
  }
  return true
}

/** A list of an object. Equality and `+` depend on `x-kubernetes-list-type`: sets and maps are unordered. */
class SchemaList extends ListValue {
  readonly #json: readonly unknown[]
  readonly #schema: StructuralSchema
  readonly #item: StructuralSchema

  constructor(json: readonly unknown[], schema: StructuralSchema) {
    super()
    this.#json = json
    this.#schema = schema
    this.#item = schema.items ?? {}
  }

  override get size(): number {
    return this.#json.length
  }

  override at(index: number): Value {
    return toValue(this.#json[index], this.#item)
  }

  override equals(other: ListValue): boolean {
    const keyOf = this.#keyOf()
    if (!keyOf) {
      const isShared = other instanceof SchemaList && other.#json === this.#json && other.#schema === this.#schema
      return isShared ? equalsItself(this.#json, this.#schema) : super.equals(other)
    }
    chargeCost(this.size)
    const items = new Map([...this.values()].map(item => [keyOf(item), item]))
    for (const theirs of other.values()) {
      const ours = items.get(keyOf(theirs))
      if (ours === undefined || !equal(ours, theirs)) return false
    }
    return true
  }

  override plus(other: ListValue): ListValue {
    const keyOf = this.#keyOf()
    if (!keyOf) return super.plus(other)
    chargeCost(this.size + other.size)
    const items = new Map([...this.values()].map(item => [keyOf(item), item]))
    const isSet = this.#schema['x-kubernetes-list-type'] === 'set'
    for (const item of other.values()) if (!isSet || !items.has(keyOf(item))) items.set(keyOf(item), item)
    return new ArrayListValue([...items.values()])
  }

  #keyOf(): ((item: Value) => string) | undefined {
    const { 'x-kubernetes-list-type': type, 'x-kubernetes-list-map-keys': keys = [] } = this.#schema
    if (type === 'set') return keyText
    if (type !== 'map') return undefined
    return item => keys.map(key => (item instanceof MapValue ? keyText(item.field(escapeField(key) ?? key)) : '')).join('\0')
  }
}

function keyText(value: Value | undefined): string {
  return typeof value === 'object' && value !== null ? 'object' : `${typeof value} ${value}`
}

/** An object with properties, or a map. */
class SchemaMap extends MapValue {
  readonly #json: Record<string, unknown>
  readonly #schema: StructuralSchema
  readonly #hasFields: boolean

  constructor(json: Record<string, unknown>, schema: StructuralSchema) {
    super()
    this.#json = json
    this.#schema = schema
    this.#hasFields = schema.properties !== undefined
  }

  override get size(): number {
    return Object.keys(this.#json).length
  }

  override get(key: Value): Value | undefined {
    if (typeof key !== 'string') throw noSuchOverload()
    const found = this.#find(key)
    return found && toValue(found.json, found.schema)
  }

  override has(name: string): boolean {
    return this.#find(name) !== undefined
  }

  override keys(): Value[] {
    const known = Object.keys(this.#json).filter(name => childSchema(this.#schema, name))
    return this.#hasFields ? known.map(name => escapeField(name) ?? name) : known
  }

  override equals(other: MapValue): boolean {
    if (other instanceof SchemaMap && other.#json === this.#json && other.#schema === this.#schema)
      return areEqualToThemselves(this.#json, this.#schema)
    for (const name of Object.keys(this.#json)) {
      chargeCost(1)
      const schema = childSchema(this.#schema, name)
      if (!schema) {
        // Fields without a schema are compared as JSON.
        if (!(other instanceof SchemaMap)) throw noSuchOverload()
        const theirs = getOwn(other.#json, name)
        if (theirs !== undefined && !equalJson(this.#json[name], theirs)) return false
        continue
      }
      const key = this.#hasFields ? (escapeField(name) ?? name) : name
      const ours = this.get(key)
      const theirs = other.get(key)
      if (ours === undefined || theirs === undefined ? ours !== theirs : !equal(ours, theirs)) return false
    }
    return true
  }

  #find(key: string): { json: unknown; schema: StructuralSchema } | undefined {
    const name = this.#hasFields ? unescapeField(key) : key
    const json = getOwn(this.#json, name)
    // In an object null is the same as absent; in a map it is a value.
    if (json === undefined || (json === null && this.#hasFields)) return undefined
    const schema = childSchema(this.#schema, name)
    return schema && { json, schema }
  }
}

/** A value without a declared type, which can only be compared. */
class UnknownValue extends MapValue {
  readonly #json: unknown

  constructor(json: unknown) {
    super()
    this.#json = json
  }

  override get size(): number {
    return 0
  }

  override get(): undefined {
    return undefined
  }

  override keys(): Value[] {
    return []
  }

  override equals(other: MapValue): boolean {
    return other instanceof UnknownValue && equalJson(this.#json, other.#json)
  }
}
