import { badRequest, isJsonObject, StatusError } from '../../kubernetes/object/index.ts'
import { parseUntrustedYaml, randomName } from '../../kubernetes/util/index.ts'
import { ownedResources } from '../kinds/index.ts'

/** What the gateway reads of a new object: its name and labels decide where it goes, and for an Event the object that it is about. */
export type NewObject = {
  readonly name: string
  readonly generateName?: string
  readonly labels: Readonly<Record<string, string>>
  readonly about?: { readonly kind: string; readonly name: string } | undefined
}

/** Parsing longer YAML blocks all other requests for seconds, and it is parsed before the rights of the user are known. kubectl and client-go send JSON. */
const maxYamlLength = 4 * 1024
const protobufMagic = Buffer.from('k8s\0')

/**
 * Reads a body in JSON, YAML or Kubernetes' protobuf.
 * @throws {StatusError} BadRequest if it is none of these, RequestEntityTooLarge for YAML of more than 4 KiB.
 */
export function readNewObject(body: Uint8Array, contentType: string): NewObject {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (isProtobuf(bytes)) return readProtobuf(bytes.subarray(protobufMagic.length))
  const document = readDocument(bytes, contentType)
  const metadata = isJsonObject(document) && isJsonObject(document.metadata) ? document.metadata : {}
  const about = isJsonObject(document) ? (document.involvedObject ?? document.regarding) : undefined
  const labels = isJsonObject(metadata.labels) ? Object.entries(metadata.labels).filter(([, value]) => typeof value === 'string') : []
  return {
    name: textOf(metadata.name),
    ...(textOf(metadata.generateName) && { generateName: textOf(metadata.generateName) }),
    labels: Object.fromEntries(labels) as Record<string, string>,
    ...(isJsonObject(about) && { about: { kind: textOf(about.kind), name: textOf(about.name) } }),
  }
}

const tablesByKind = new Map([...ownedResources].map(([table, { kind }]) => [kind, table]))

/** What an Event is about, if that is an owned object: its table and name. The table of any other kind is empty. */
export function aboutOf(object: NewObject | undefined): { readonly table: string; readonly name: string } | undefined {
  return object?.about && { table: tablesByKind.get(object.about.kind) ?? '', name: object.about.name }
}

/** A new object with its name: that of the path or of the object, or a generated one, which the body then has too. Empty if it has none of these. */
export function named<Body extends Uint8Array | undefined>(
  { name, body }: { readonly name: string; readonly body: Body },
  object: NewObject | undefined,
  contentType = '',
): { readonly name: string; readonly body: Body | Uint8Array } {
  const known = name || object?.name || ''
  if (known !== '' || !body || !object?.generateName) return { name: known, body }
  const generated = randomName(object.generateName)
  return { name: generated, body: withName(body, contentType, generated) }
}

/**
 * The body with a name, of an object that has none. What it has besides is unchanged.
 * @throws {StatusError} BadRequest if it is in protobuf, or cannot be read.
 */
function withName(body: Uint8Array, contentType: string, name: string): Uint8Array {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (isProtobuf(bytes))
    throw badRequest('the gateway generates a name only for an object in JSON or YAML, not in protobuf: set metadata.name')
  const document = readDocument(bytes, contentType) as { metadata: object }
  // JSON is YAML too.
  return Buffer.from(JSON.stringify({ ...document, metadata: { ...document.metadata, name } }))
}

/**
 * The text at a path below `spec` of a body, empty if there is none. In protobuf, all parts of the path are the field 1.
 * @throws {StatusError} BadRequest if the body cannot be read, RequestEntityTooLarge for YAML of more than 4 KiB.
 */
export function readSpecText(body: Uint8Array, contentType: string, path: readonly string[]): string {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (!isProtobuf(bytes)) {
    const at = ['spec', ...path].reduce<unknown>(
      (value, key) => (isJsonObject(value) ? value[key] : undefined),
      readDocument(bytes, contentType),
    )
    return textOf(at)
  }
  try {
    const object = bytesOf(messageOf(bytes.subarray(protobufMagic.length)), fields.unknownRaw)
    const spec = bytesOf(messageOf(object), fields.spec)
    return path.reduce((message, _) => bytesOf(messageOf(message), 1), spec).toString()
  } catch (error) {
    throw badRequest(`the body is not an object in protobuf: ${(error as Error).message}`)
  }
}

const isProtobuf = (bytes: Buffer): boolean => bytes.subarray(0, protobufMagic.length).equals(protobufMagic)

function readDocument(bytes: Buffer, contentType: string): unknown {
  const text = bytes.toString()
  const isYaml = /yaml/.test(contentType)
  try {
    return JSON.parse(text)
  } catch (error) {
    if (!isYaml) throw badRequest(`the body is not JSON: ${(error as Error).message.split('\n')[0]}`)
  }
  if (text.length > maxYamlLength)
    throw new StatusError(
      'RequestEntityTooLarge',
      `the body is YAML with ${text.length} characters, at most ${maxYamlLength} are supported for objects of this kind: send it as JSON`,
    )
  try {
    return parseUntrustedYaml(text)
  } catch (error) {
    throw badRequest(`the body is not YAML: ${(error as Error).message.split('\n')[0]}`)
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

/** Field numbers of `runtime.Unknown`, `ObjectMeta`, and the references of `core/v1` Event (2) and `events.k8s.io/v1` Event (8): k8s.io/api, generated.proto. */
const fields = {
  unknownType: 1,
  unknownRaw: 2,
  metadata: 1,
  spec: 2,
  name: 1,
  generateName: 2,
  labels: 11,
  typeKind: 2,
  involvedObject: 2,
  regarding: 8,
  aboutKind: 1,
  aboutName: 3,
}

function readProtobuf(bytes: Buffer): NewObject {
  try {
    const unknown = messageOf(bytes)
    const object = messageOf(bytesOf(unknown, fields.unknownRaw))
    const metadata = messageOf(bytesOf(object, fields.metadata))
    const entries = (metadata.get(fields.labels) ?? []).map(entry => {
      const pair = messageOf(entry)
      return [bytesOf(pair, 1).toString(), bytesOf(pair, 2).toString()] as const
    })
    const type = messageOf(bytesOf(unknown, fields.unknownType))
    const isEvent = bytesOf(type, fields.typeKind).toString() === 'Event'
    const group = bytesOf(type, 1).toString()
    const about = isEvent ? messageOf(bytesOf(object, group === 'v1' ? fields.involvedObject : fields.regarding)) : undefined
    const generateName = bytesOf(metadata, fields.generateName).toString()
    return {
      name: bytesOf(metadata, fields.name).toString(),
      ...(generateName && { generateName }),
      labels: Object.fromEntries(entries),
      ...(about && { about: { kind: bytesOf(about, fields.aboutKind).toString(), name: bytesOf(about, fields.aboutName).toString() } }),
    }
  } catch (error) {
    throw badRequest(`the body is not an object in protobuf: ${(error as Error).message}`)
  }
}

type Message = ReadonlyMap<number, readonly Buffer[]>

const empty = Buffer.alloc(0)
/** No encoder writes a field twice that is not a list, and decoders read it differently: the gateway could claim another name than the partition creates. */
function bytesOf(message: Message, field: number): Buffer {
  const values = message.get(field) ?? []
  if (values.length > 1) throw new RangeError(`field ${field} is repeated`)
  return values[0] ?? empty
}

/** The length-delimited fields of a message; the others are skipped (protobuf.dev, Encoding). */
function messageOf(bytes: Buffer): Message {
  const message = new Map<number, Buffer[]>()
  let at = 0
  const varint = () => {
    let value = 0
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[at++]
      if (byte === undefined) throw new RangeError('it ends early')
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new RangeError('a number is too long')
  }
  while (at < bytes.length) {
    const tag = varint()
    const [field, wireType] = [Math.floor(tag / 8), tag % 8]
    if (wireType === 0) varint()
    else if (wireType === 1) at += 8
    else if (wireType === 5) at += 4
    else if (wireType === 2) {
      const length = varint()
      if (length > bytes.length - at) throw new RangeError('it ends early')
      const values = message.get(field) ?? []
      values.push(bytes.subarray(at, at + length))
      message.set(field, values)
      at += length
    } else throw new RangeError(`wire type ${wireType} is not known`)
  }
  return message
}
