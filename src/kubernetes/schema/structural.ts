import { forbiddenField, invalidValue, requiredValue, unsupportedValue } from '../object/field-cause.ts'
import { goRegexpError } from '../object/go-regexp.ts'
import { getOwn, isJsonObject } from '../object/json.ts'
import type { StatusCause } from '../object/status-error.ts'
import type { StructuralSchema } from '../object/structural-schema.ts'
import { applyDefaults } from './default.ts'
import { pruneUnknown } from './prune.ts'
import { validateSchema } from './validate.ts'
import { ruleErrors } from './validation-rules.ts'

const types = ['array', 'boolean', 'integer', 'number', 'object', 'string']
const listTypes = ['atomic', 'set', 'map']
const mapTypes = ['atomic', 'granular']
/** Keywords of JSON Schema that a structural schema may not use anywhere. */
const neverAllowed = ['$ref', 'definitions', 'dependencies', 'patternProperties', 'additionalItems']
/** Keywords that are not allowed within allOf, anyOf, oneOf and not. */
const notInJunctors = [
  'additionalProperties',
  'default',
  'description',
  'nullable',
  'title',
  'type',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-validations',
]
const maxDepth = 100

/**
 * Why `schema` (any JSON value) cannot be the `openAPIV3Schema` of a CustomResourceDefinition; empty if it is structural:
 * every field has a type, value validations do not add to the structure, and defaults are valid.
 */
export function structuralErrors(schema: unknown, path = 'spec.validation.openAPIV3Schema'): StatusCause[] {
  const causes: StatusCause[] = []
  if (!isJsonObject(schema)) return [requiredValue(path, 'schemas are required')]
  checkStructure(schema, path, 'root', causes, 0)
  if (causes.length === 0) checkRootMetadata(schema as StructuralSchema, path, causes)
  if (causes.length === 0) checkDefaults(schema as StructuralSchema, path, causes)
  causes.push(...ruleErrors(schema, path, causes.length === 0))
  return causes
}

type Level = 'root' | 'field' | 'item'

function checkStructure(schema: Record<string, unknown>, path: string, level: Level, causes: StatusCause[], depth: number): void {
  if (depth > maxDepth) {
    causes.push(forbiddenField(path, `schemas must not be nested deeper than ${maxDepth} levels`))
    return
  }
  const { type } = schema
  const isIntOrString = schema['x-kubernetes-int-or-string'] === true
  const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true
  if (type === undefined || type === '') {
    if (level === 'root') causes.push(requiredValue(`${path}.type`, 'must not be empty at the root'))
    else if (!isIntOrString && !keepsUnknown) {
      const what = level === 'item' ? 'array items' : 'object fields'
      causes.push(requiredValue(`${path}.type`, `must not be empty for specified ${what}`))
    }
  } else if (typeof type !== 'string' || !types.includes(type)) causes.push(unsupportedValue(`${path}.type`, type, types))
  else if (level === 'root' && type !== 'object') causes.push(invalidValue(`${path}.type`, type, 'must be object at the root'))
  else if (isIntOrString) causes.push(forbiddenField(`${path}.type`, 'must be empty if x-kubernetes-int-or-string is true'))

  for (const name of neverAllowed)
    if (schema[name] !== undefined) causes.push(forbiddenField(`${path}.${name}`, `${name} is not supported`))
  if (schema.uniqueItems === true) {
    causes.push(forbiddenField(`${path}.uniqueItems`, 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic'))
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    causes.push(invalidValue(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'))
  }
  checkExtensions(schema, path, causes)
  checkBounds(schema, path, causes)

  const { properties, additionalProperties, items } = schema
  if (properties !== undefined && additionalProperties !== undefined && additionalProperties !== null) {
    causes.push(forbiddenField(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'))
  }
  if (additionalProperties === false) {
    causes.push(forbiddenField(`${path}.additionalProperties`, 'additionalProperties cannot be set to false'))
  } else if (isJsonObject(additionalProperties)) {
    if (level === 'root') causes.push(forbiddenField(`${path}.additionalProperties`, 'must not be used at the root'))
    checkStructure(additionalProperties, `${path}.additionalProperties`, 'field', causes, depth + 1)
  }
  if (properties !== undefined && !isJsonObject(properties))
    causes.push(invalidValue(`${path}.properties`, properties, 'must be an object'))
  else if (properties !== undefined) {
    for (const name of Object.keys(properties)) {
      const at = `${path}.properties[${name}]`
      const child = properties[name]
      if (isJsonObject(child)) checkStructure(child, at, 'field', causes, depth + 1)
      else causes.push(invalidValue(at, child, 'must be a schema'))
    }
  }
  if (Array.isArray(items)) causes.push(forbiddenField(`${path}.items`, 'items must be a schema object and not an array'))
  else if (isJsonObject(items)) checkStructure(items, `${path}.items`, 'item', causes, depth + 1)
  else if (type === 'array') causes.push(requiredValue(`${path}.items`, 'must be specified'))

  checkJunctors(schema, schema, path, causes, depth)
}

function checkExtensions(schema: Record<string, unknown>, path: string, causes: StatusCause[]): void {
  const { type } = schema
  const listType = schema['x-kubernetes-list-type']
  const mapType = schema['x-kubernetes-map-type']
  const mapKeys = schema['x-kubernetes-list-map-keys']
  if (schema['x-kubernetes-embedded-resource'] === true) {
    if (type !== 'object') {
      causes.push(invalidValue(`${path}.type`, type ?? '', 'must be object if x-kubernetes-embedded-resource is true'))
    }
    if (
      schema['x-kubernetes-preserve-unknown-fields'] !== true &&
      Object.keys((schema.properties as object | undefined) ?? {}).length === 0
    ) {
      causes.push(
        requiredValue(
          `${path}.properties`,
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ),
      )
    }
  }
  if (listType !== undefined) {
    if (!listTypes.includes(listType as string)) causes.push(unsupportedValue(`${path}.x-kubernetes-list-type`, listType, listTypes))
    if (type !== 'array') causes.push(invalidValue(`${path}.type`, type ?? '', 'must be array if x-kubernetes-list-type is specified'))
  }
  if (mapType !== undefined) {
    if (!mapTypes.includes(mapType as string)) causes.push(unsupportedValue(`${path}.x-kubernetes-map-type`, mapType, mapTypes))
    if (type !== 'object') causes.push(invalidValue(`${path}.type`, type ?? '', 'must be object if x-kubernetes-map-type is specified'))
  }
  const itemType = isJsonObject(schema.items) ? schema.items : undefined
  if (listType === 'set' && itemType?.type === 'object' && itemType['x-kubernetes-map-type'] !== 'atomic') {
    const why = 'must be atomic as item of a list with x-kubernetes-list-type=set'
    causes.push(invalidValue(`${path}.items.x-kubernetes-map-type`, itemType['x-kubernetes-map-type'] ?? null, why))
  }
  if (listType !== 'map') {
    if (mapKeys !== undefined) {
      causes.push(forbiddenField(`${path}.x-kubernetes-list-map-keys`, 'must not be specified if x-kubernetes-list-type is not map'))
    }
    return
  }
  if (!Array.isArray(mapKeys) || mapKeys.length === 0) {
    causes.push(requiredValue(`${path}.x-kubernetes-list-map-keys`, 'must not be empty if x-kubernetes-list-type is map'))
    return
  }
  const items = schema.items as StructuralSchema | undefined
  if (!isJsonObject(items) || items.type !== 'object') {
    causes.push(invalidValue(`${path}.items.type`, items?.type ?? '', 'must be object if parent array x-kubernetes-list-type is map'))
    return
  }
  for (const [index, key] of mapKeys.entries()) {
    const property = typeof key === 'string' ? getOwn(items.properties, key) : undefined
    if (property === undefined) {
      causes.push(invalidValue(`${path}.x-kubernetes-list-map-keys[${index}]`, key, 'entries must all be names of item properties'))
    } else if (property.type === 'array' || property.type === 'object') {
      causes.push(
        invalidValue(
          `${path}.items.properties[${key}].type`,
          property.type,
          'must be a scalar type if parent array x-kubernetes-list-type is map',
        ),
      )
    } else if (!items.required?.includes(key) && property.default === undefined) {
      causes.push(
        requiredValue(
          `${path}.items.properties[${key}].default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      )
    }
  }
}

function checkBounds(schema: Record<string, unknown>, path: string, causes: StatusCause[]): void {
  const { pattern, required } = schema
  const patternIssue = typeof pattern === 'string' ? goRegexpError(pattern) : pattern === undefined ? undefined : 'it is not a string'
  if (patternIssue !== undefined) {
    causes.push(invalidValue(`${path}.pattern`, pattern, `must be a valid regular expression, but isn't: ${patternIssue}`))
  }
  if (schema['x-kubernetes-validations'] !== undefined && !Array.isArray(schema['x-kubernetes-validations'])) {
    causes.push(invalidValue(`${path}.x-kubernetes-validations`, schema['x-kubernetes-validations'], 'must be an array'))
  }
  if (schema.enum !== undefined && !Array.isArray(schema.enum)) causes.push(invalidValue(`${path}.enum`, schema.enum, 'must be an array'))
  if (required !== undefined && !(Array.isArray(required) && required.every(name => typeof name === 'string'))) {
    causes.push(invalidValue(`${path}.required`, required, 'must be an array of strings'))
  }
  for (const name of [
    'minLength',
    'maxLength',
    'minItems',
    'maxItems',
    'minProperties',
    'maxProperties',
    'minimum',
    'maximum',
    'multipleOf',
  ]) {
    const bound = schema[name]
    if (bound !== undefined && typeof bound !== 'number') causes.push(invalidValue(`${path}.${name}`, bound, 'must be a number'))
  }
  if (typeof schema.multipleOf === 'number' && schema.multipleOf <= 0) {
    causes.push(invalidValue(`${path}.multipleOf`, schema.multipleOf, 'must be greater than 0'))
  }
}

function checkJunctors(schema: Record<string, unknown>, structure: unknown, path: string, causes: StatusCause[], depth: number): void {
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    const parts = schema[name]
    if (parts === undefined || parts === null) continue
    if (!Array.isArray(parts)) causes.push(invalidValue(`${path}.${name}`, parts, 'must be an array of schemas'))
    else for (const [index, part] of parts.entries()) checkJunctor(part, structure, `${path}.${name}[${index}]`, causes, depth + 1)
  }
  if (schema.not !== undefined && schema.not !== null) checkJunctor(schema.not, structure, `${path}.not`, causes, depth + 1)
}

/** A part of a junctor may only restrict `structure`, the schema around it at the same path. */
function checkJunctor(part: unknown, structure: unknown, path: string, causes: StatusCause[], depth: number): void {
  if (!isJsonObject(part) || depth > maxDepth) {
    causes.push(invalidValue(path, part, 'must be a schema'))
    return
  }
  const outer = isJsonObject(structure) ? structure : {}
  // The one exception of Kubernetes: the long form of int-or-string.
  const isIntOrStringPart = outer['x-kubernetes-int-or-string'] === true && Object.keys(part).length === 1 && 'type' in part
  if (!isIntOrStringPart) {
    for (const name of notInJunctors) {
      if (part[name] !== undefined && part[name] !== false) causes.push(forbiddenField(`${path}.${name}`, 'must be empty to be structural'))
    }
  }
  checkBounds(part, path, causes)
  if (isJsonObject(part.properties)) {
    for (const name of Object.keys(part.properties)) {
      const at = `${path}.properties[${name}]`
      const around =
        getOwn(isJsonObject(outer.properties) ? outer.properties : undefined, name) ??
        (isJsonObject(outer.additionalProperties) ? outer.additionalProperties : undefined)
      if (around === undefined) causes.push(requiredValue(outerPath(at), `because it is defined in ${at}`))
      checkJunctor(part.properties[name], around, at, causes, depth + 1)
    }
  }
  if (isJsonObject(part.items)) {
    if (outer.items === undefined) causes.push(requiredValue(outerPath(`${path}.items`), `because it is defined in ${path}.items`))
    checkJunctor(part.items, outer.items, `${path}.items`, causes, depth + 1)
  }
  checkJunctors(part, structure, path, causes, depth)
}

const outerPath = (path: string) => path.replace(/\.(allOf|anyOf|oneOf)\[\d+\]|\.not(?=\.|$)/g, '')

function checkRootMetadata(schema: StructuralSchema, path: string, causes: StatusCause[]): void {
  const metadata = getOwn(schema.properties, 'metadata')
  if (metadata === undefined) return
  const at = `${path}.properties[metadata]`
  if (metadata.type !== 'object') causes.push(invalidValue(`${at}.type`, metadata.type, 'must be object'))
  for (const name of Object.keys(metadata.properties ?? {})) {
    if (name !== 'name' && name !== 'generateName') {
      causes.push(forbiddenField(at, 'must not specify anything other than name and generateName, but metadata is implicitly specified'))
      break
    }
  }
}

function checkDefaults(schema: StructuralSchema, path: string, causes: StatusCause[]): void {
  if (schema.default !== undefined) {
    const at = `${path}.default`
    const { pruned } = pruneUnknown(schema, schema.default, at)
    if (pruned.length > 0) causes.push(invalidValue(at, schema.default, 'must not have unknown fields'))
    if (schema.default === null && schema.nullable !== true) causes.push(invalidValue(at, null, 'must not be null if nullable is not true'))
    // As in Kubernetes, the message omits the path; the field contains it.
    else
      causes.push(
        ...validateSchema(schema, applyDefaults(schema, schema.default), '').map(cause => ({
          ...cause,
          message: cause.message.replace('<root> in body', ' in body'),
          field: at + (cause.field && `.${cause.field}`),
        })),
      )
  }
  for (const [name, property] of Object.entries(schema.properties ?? {})) checkDefaults(property, `${path}.properties[${name}]`, causes)
  if (typeof schema.additionalProperties === 'object') checkDefaults(schema.additionalProperties, `${path}.additionalProperties`, causes)
  if (schema.items) checkDefaults(schema.items, `${path}.items`, causes)
}
