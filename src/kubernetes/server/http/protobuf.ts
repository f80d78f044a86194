import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { badRequest, StatusError, setOwn } from '../../object/index.ts'
import { sourceDirectory } from '../../util/index.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'
const magic = Buffer.from('k8s\0')
// The schema of a CustomResourceDefinition nests deepest; legitimate ones stay far below.
const maxDepth = 64

/**
 * The fields of each message by number: the JSON name and the type. A type is `string`, `bool`, `int`, `double`, `bytes`, another
 * message, or one of {@link special}. The prefix `[]` is a repeated field, `{}` a map with string keys, `?` a field whose zero value JSON
 * omits, `^` a message whose fields are inlined in the enclosing one.
 */
type Messages = {
  readonly kinds: Readonly<Record<string, string>>
  readonly messages: Readonly<Record<string, Readonly<Record<string, readonly [field: string, type: string]>>>>
}

let loaded: Messages | undefined

/** Read when the first body comes in protobuf: many servers never see one. Written by scripts/generate-protobuf-messages.sh. */
function known(): Messages {
  loaded ??= JSON.parse(readFileSync(join(sourceDirectory, 'kubernetes/server/http/schemas/protobuf-messages.json'), 'utf8')) as Messages
  return loaded
}

/**
 * Decodes a protobuf body: typed clients of client-go send them for all built-in kinds. Responses are always JSON, which those clients
 * accept.
 * @returns the object as it would be decoded from JSON.
 * @throws {StatusError} UnsupportedMediaType for other kinds, BadRequest for an invalid message.
 */
export function readProtobuf(body: Buffer): object {
  if (!body.subarray(0, 4).equals(magic)) throw badRequest('the body of the request is not a Kubernetes protobuf message')
  const type = { apiVersion: '', kind: '' }
  let raw: Buffer = Buffer.alloc(0)
  forEachField(body.subarray(4), (number, bytes) => {
    if (number === 2 && bytes) raw = bytes
    if (number !== 1 || !bytes) return
    forEachField(bytes, (part, text) => {
      if (part === 1) type.apiVersion = text?.toString() ?? ''
      else if (part === 2) type.kind = text?.toString() ?? ''
    })
  })
  const { kinds } = known()
  const name = type.kind === 'DeleteOptions' ? type.kind : `${type.apiVersion} ${type.kind}`
  if (!Object.hasOwn(kinds, name)) {
    throw new StatusError(
      'UnsupportedMediaType',
      `${type.apiVersion} ${type.kind} cannot be sent as ${protobufType} - accepted media types include: application/json, application/yaml`,
    )
  }
  return readMessage(kinds[name] as string, raw, 0, { ...type })
}

function readMessage(name: string, bytes: Buffer, depth: number, into: Record<string, unknown> = {}): Record<string, unknown> {
  if (depth > maxDepth) throw malformed()
  const fields = known().messages[name]
  if (!fields) throw malformed()
  forEachField(bytes, (number, content, value) => {
    const field = fields[number]
    if (!field) return
    const [fieldName, type] = field
    const isOptional = type.startsWith('?')
    const of = isOptional ? type.slice(1) : type
    if (of.startsWith('^')) readMessage(of.slice(1), content ?? empty, depth + 1, into)
    else if (of.startsWith('[]')) {
      const list = Array.isArray(into[fieldName]) ? into[fieldName] : []
      into[fieldName] = list
      list.push(readValue(of.slice(2), content, value, depth))
    } else if (of.startsWith('{}')) {
      const map = (into[fieldName] ?? {}) as Record<string, unknown>
      into[fieldName] = map
      readMapEntry(of.slice(2), content ?? empty, depth, map)
    } else {
      const read = readValue(of, content, value, depth)
      if (read !== undefined && !(isOptional && isZero(read))) into[fieldName] = read
    }
  })
  return into
}

const empty = Buffer.alloc(0)

const isZero = (value: unknown) => value === '' || value === 0 || value === false

function readMapEntry(type: string, bytes: Buffer, depth: number, into: Record<string, unknown>): void {
  let key = ''
  let value: unknown = type === 'string' ? '' : undefined
  forEachField(bytes, (number, content, scalar) => {
    if (number === 1) key = content?.toString() ?? ''
    else if (number === 2) value = readValue(type, content, scalar, depth)
  })
  setOwn(into, key, value ?? null)
}

type Special = (bytes: Buffer, depth: number) => unknown

/** Types whose JSON differs from their message. */
const special: Readonly<Record<string, Special>> = {
  Time: bytes => readTime(bytes, 0),
  MicroTime: bytes => readTime(bytes, 6),
  Raw: bytes => parseRaw(only(bytes, 1)),
  Quantity: bytes => only(bytes, 1).toString(),
  IntOrString(bytes) {
    let isText = false
    let number = 0
    let text = ''
    forEachField(bytes, (field, content, value) => {
      if (field === 1) isText = value === 1
      else if (field === 2) number = value
      else if (field === 3) text = content?.toString() ?? ''
    })
    return isText ? text : number
  },
  Strings: bytes => all(bytes, 1).map(String),
  SchemaOrArray(bytes, depth) {
    const many = all(bytes, 2)
    return many.length > 0 ? many.map(one => readSchema(one, depth)) : readSchema(only(bytes, 1), depth)
  },
  SchemaOrBool(bytes, depth) {
    let allows = false
    let schema: Buffer | undefined
    forEachField(bytes, (field, content, value) => {
      if (field === 1) allows = value !== 0
      else if (field === 2) schema = content
    })
    return schema ? readSchema(schema, depth) : allows
  },
  SchemaOrStrings(bytes, depth) {
    const schema = all(bytes, 1)[0]
    return schema ? readSchema(schema, depth) : all(bytes, 2).map(String)
  },
}

const readSchema = (bytes: Buffer, depth: number) => readMessage('apiextensions/v1.JSONSchemaProps', bytes, depth + 1)

function readValue(type: string, bytes: Buffer = empty, value: number, depth: number): unknown {
  switch (type) {
    case 'string':
      return bytes.toString('utf8')
    case 'bytes':
      return bytes.toString('base64')
    case 'int':
    case 'double':
      return value
    case 'bool':
      return value !== 0
    default:
      return Object.hasOwn(special, type) ? (special[type] as Special)(bytes, depth) : readMessage(type, bytes, depth + 1)
  }
}

function all(bytes: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = []
  forEachField(bytes, (number, content) => {
    if (number === wanted && content) found.push(content)
  })
  return found
}

const only = (bytes: Buffer, wanted: number): Buffer => all(bytes, wanted)[0] ?? empty

function parseRaw(bytes: Buffer): unknown {
  if (bytes.length === 0) return {}
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw malformed()
  }
}

function readTime(bytes: Buffer, decimals: number): string | undefined {
  if (bytes.length === 0) return undefined
  let seconds = 0
  let nanos = 0
  forEachField(bytes, (number, _, value) => {
    if (number === 1) seconds = value
    else if (number === 2) nanos = value
  })
  const date = new Date(seconds * 1_000)
  if (Number.isNaN(date.getTime())) throw malformed()
  const fraction = decimals > 0 ? `.${String(nanos).padStart(9, '0').slice(0, decimals)}` : ''
  return `${date.toISOString().slice(0, 19)}${fraction}Z`
}

/** Calls `visit` with the fields in order: `bytes` for length-delimited fields, else `value`. Source: protobuf.dev/programming-guides/encoding. */
function forEachField(bytes: Buffer, visit: (number: number, bytes: Buffer | undefined, value: number) => void): void {
  let at = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw malformed()
      if (shift === 0n && byte < 0x80) return byte
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return Number(BigInt.asIntN(64, value))
    }
    throw malformed()
  }
  while (at < bytes.length) {
    const tag = varint()
    const number = Math.floor(tag / 8)
    switch (tag & 7) {
      case 0:
        visit(number, undefined, varint())
        break
      case 1: {
        if (at + 8 > bytes.length) throw malformed()
        visit(number, undefined, bytes.readDoubleLE(at))
        at += 8
        break
      }
      case 2: {
        const length = varint()
        if (length < 0 || at + length > bytes.length) throw malformed()
        visit(number, bytes.subarray(at, at + length), 0)
        at += length
        break
      }
      case 5:
        at += 4
        break
      default:
        throw malformed()
    }
  }
}

function malformed(): StatusError {
  return badRequest('the body of the request is not a well-formed protobuf message')
}
