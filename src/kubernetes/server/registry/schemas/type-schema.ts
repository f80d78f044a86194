import type { StructuralSchema } from '../../../object/index.ts'
import { type Definition, definition } from './definitions.ts'

/** A structural schema with the name of its Go type. */
export type TypeSchema = Omit<StructuralSchema, 'properties' | 'additionalProperties' | 'items'> & {
  properties?: Record<string, TypeSchema>
  additionalProperties?: TypeSchema
  items?: TypeSchema
  /** The key in the tables of defaults and rules, such as `core.v1.Container`. */
  typeName?: string
  /** Set if the JSON representation differs from the fields of the Go type. */
  form?: 'quantity' | 'micro-time'
  /** Pointer fields: an explicit zero value is kept, not dropped. */
  pointers?: ReadonlySet<string>
  /** Values of absent fields that Go always encodes: non-pointer structs and fields without `omitempty`. A struct starts as `{}` and gets its own zeros. */
  zeros?: readonly (readonly [field: string, value: unknown])[]
  /** Defaults from the published schema, such as `protocol: TCP`. */
  defaults?: readonly (readonly [field: string, value: unknown])[]
}

const resolved = new Map<string, TypeSchema>()

/**
 * The schema of a type with its references resolved. A type that is used in several places is one object, so PodSpec exists once. No served
 * type contains itself.
 */
export function typeSchema(name: string): TypeSchema {
  let schema = resolved.get(name)
  if (!schema) {
    schema = special[name] ?? fromDefinition(definition(name), typeNameOf(name))
    resolved.set(name, schema)
  }
  return schema
}

/** `core.v1.Pod`, `meta.v1.LabelSelector`. */
function typeNameOf(name: string): string {
  return name.replace(/^io\.k8s\.(api\.|apimachinery\.pkg\.apis\.)/, '')
}

const special: Record<string, TypeSchema> = {
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { form: 'quantity' },
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { 'x-kubernetes-int-or-string': true },
  'io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime': { type: 'string', form: 'micro-time' },
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1': { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  'io.k8s.apimachinery.pkg.runtime.RawExtension': { 'x-kubernetes-preserve-unknown-fields': true, 'x-kubernetes-map-type': 'atomic' },
}

function fromDefinition(part: Definition, typeName?: string): TypeSchema {
  const { $ref, properties, additionalProperties, items, pointers, absent, required: _, default: __, ...rest } = part
  // Descriptions are read from the definitions; a copy here would cost memory.
  const { description: ___, ...plain } = rest
  const schema: TypeSchema = $ref ? { ...typeSchema($ref), ...plain } : { ...plain }
  if (typeName) schema.typeName = typeName
  if (pointers) schema.pointers = new Set(pointers)
  if (items) schema.items = fromDefinition(items)
  if (additionalProperties) schema.additionalProperties = fromDefinition(additionalProperties)
  if (properties) {
    schema.properties = {}
    const zeros: [string, unknown][] = Object.entries(absent ?? {})
    const defaults: [string, unknown][] = []
    for (const [field, property] of Object.entries(properties)) {
      schema.properties[field] = fromDefinition(property)
      if (property.default === undefined || (absent && Object.hasOwn(absent, field))) continue
      if (isZero(property.default)) zeros.push([field, property.default])
      else {
        defaults.push([field, property.default])
        // Server-side apply uses it as the key of list items that omit the field.
        schema.properties[field].default = property.default
      }
    }
    if (zeros.length > 0) schema.zeros = zeros
    if (defaults.length > 0) schema.defaults = defaults
  }
  return schema
}

function isZero(value: unknown): boolean {
  return value === '' || value === 0 || value === false || (typeof value === 'object' && value !== null)
}
