import { isJsonObject } from '../../object/index.ts'
import { yaml } from '../../util/index.ts'

/**
 * OpenAPI 2 in the protobuf encoding of github.com/google/gnostic-models (openapiv2/OpenAPIv2.proto), which client-go requests. Only the
 * fields of our documents are supported; a field that the message does not have is a vendor extension, which is encoded as YAML.
 */
export function openApiV2Protobuf(document: object): Buffer {
  return message(messages.Document!, document as JsonObject)
}

type JsonObject = { readonly [key: string]: unknown }
/** Encodes a value as field number `field`. */
type Write = (field: number, value: unknown) => Buffer[]
type Fields = { readonly [name: string]: readonly [field: number, write: Write] }
type Message = { readonly fields: Fields; readonly extensions?: number }

const varintType = 0
const lengthType = 2

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80)
    rest = Math.floor(rest / 0x80)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

const tag = (field: number, type: number): Buffer => varint(field * 8 + type)
const chunk = (field: number, bytes: Buffer): Buffer[] => [tag(field, lengthType), varint(bytes.length), bytes]

const text: Write = (field, value) => (typeof value === 'string' && value !== '' ? chunk(field, Buffer.from(value)) : [])
const flag: Write = (field, value) => (value === true ? [tag(field, varintType), Buffer.of(1)] : [])
const whole: Write = (field, value) =>
  typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? [tag(field, varintType), varint(value)] : []
const double: Write = (field, value) => {
  if (typeof value !== 'number' || value === 0) return []
  const bytes = Buffer.alloc(8)
  bytes.writeDoubleLE(value)
  return [tag(field, 1), bytes]
}
const list =
  (write: Write): Write =>
  (field, value) =>
    Array.isArray(value) ? value.flatMap(item => write(field, item)) : []
/** `Any` of gnostic: the value as YAML. */
const any: Write = (field, value) => chunk(field, Buffer.concat(chunk(2, Buffer.from(yaml().stringify(value)))))
const of =
  (name: string): Write =>
  (field, value) =>
    isJsonObject(value) ? chunk(field, message(messages[name]!, value)) : []
/** A message with a single field, such as a oneof. */
const within =
  (inner: number, write: Write): Write =>
  (field, value) =>
    chunk(field, Buffer.concat(write(inner, value)))
/** A map, in gnostic a list of names with values, in a message of its own or as `field` itself. */
const named =
  (write: Write): Write =>
  (field, value) =>
    isJsonObject(value)
      ? Object.entries(value).flatMap(([name, item]) => chunk(field, Buffer.concat([...text(1, name), ...write(2, item)])))
      : []
const mapped =
  (inner: number, write: Write): Write =>
  (field, value) =>
    chunk(field, Buffer.concat(named(write)(inner, value)))

/** Body parameters have a schema, others a type; `in` distinguishes the others. */
const parameter: Write = (field, value) => {
  if (!isJsonObject(value)) return []
  const kind =
    value.in === 'body'
      ? within(1, of('BodyParameter'))
      : within(2, within(value.in === 'path' ? 4 : 3, of(value.in === 'path' ? 'PathParameter' : 'QueryParameter')))
  return within(1, kind)(field, value)
}
const typeItem: Write = (field, value) => chunk(field, Buffer.concat(list(text)(1, [value].flat())))
const additional: Write = (field, value) =>
  chunk(field, Buffer.concat(typeof value === 'boolean' ? flag(2, value) : of('Schema')(1, value)))

const messages: { readonly [name: string]: Message } = {
  Document: {
    fields: {
      swagger: [1, text],
      info: [2, of('Info')],
      paths: [8, mapped(2, of('PathItem'))],
      definitions: [9, mapped(1, of('Schema'))],
    },
    extensions: 16,
  },
  Info: { fields: { title: [1, text], version: [2, text], description: [3, text] }, extensions: 7 },
  PathItem: {
    fields: {
      get: [2, of('Operation')],
      put: [3, of('Operation')],
      post: [4, of('Operation')],
      delete: [5, of('Operation')],
      options: [6, of('Operation')],
      head: [7, of('Operation')],
      patch: [8, of('Operation')],
      parameters: [9, list(parameter)],
    },
    extensions: 10,
  },
  Operation: {
    fields: {
      tags: [1, list(text)],
      summary: [2, text],
      description: [3, text],
      operationId: [5, text],
      produces: [6, list(text)],
      consumes: [7, list(text)],
      parameters: [8, list(parameter)],
      responses: [9, mapped(1, within(1, of('Response')))],
      schemes: [10, list(text)],
      deprecated: [11, flag],
    },
    extensions: 13,
  },
  BodyParameter: {
    fields: { description: [1, text], name: [2, text], in: [3, text], required: [4, flag], schema: [5, of('Schema')] },
    extensions: 6,
  },
  QueryParameter: {
    fields: {
      required: [1, flag],
      in: [2, text],
      description: [3, text],
      name: [4, text],
      type: [6, text],
      format: [7, text],
      uniqueItems: [20, flag],
    },
    extensions: 23,
  },
  PathParameter: {
    fields: {
      required: [1, flag],
      in: [2, text],
      description: [3, text],
      name: [4, text],
      type: [5, text],
      format: [6, text],
      uniqueItems: [19, flag],
    },
    extensions: 22,
  },
  Response: { fields: { description: [1, text], schema: [2, within(1, of('Schema'))] }, extensions: 5 },
  Schema: {
    fields: {
      $ref: [1, text],
      format: [2, text],
      title: [3, text],
      description: [4, text],
      default: [5, any],
      multipleOf: [6, double],
      maximum: [7, double],
      exclusiveMaximum: [8, flag],
      minimum: [9, double],
      exclusiveMinimum: [10, flag],
      maxLength: [11, whole],
      minLength: [12, whole],
      pattern: [13, text],
      maxItems: [14, whole],
      minItems: [15, whole],
      uniqueItems: [16, flag],
      maxProperties: [17, whole],
      minProperties: [18, whole],
      required: [19, list(text)],
      enum: [20, list(any)],
      additionalProperties: [21, additional],
      type: [22, typeItem],
      items: [23, within(1, of('Schema'))],
      allOf: [24, list(of('Schema'))],
      properties: [25, mapped(1, of('Schema'))],
      readOnly: [27, flag],
      example: [30, any],
    },
    extensions: 31,
  },
}

// Sorted by field number, as Go encodes them, so that a document always has the same bytes.
function message({ fields, extensions }: Message, value: JsonObject): Buffer {
  const parts: [field: number, bytes: Buffer[]][] = []
  for (const [name, item] of Object.entries(value)) {
    if (item === undefined) continue
    if (Object.hasOwn(fields, name)) {
      const [field, write] = fields[name]!
      parts.push([field, write(field, item)])
    } else if (extensions !== undefined && name.startsWith('x-')) parts.push([extensions, named(any)(extensions, { [name]: item })])
  }
  return Buffer.concat(parts.sort(([a], [b]) => a - b).flatMap(([, bytes]) => bytes))
}
