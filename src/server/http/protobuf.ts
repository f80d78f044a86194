import { badRequest, StatusError, setOwn } from '../../kube/index.ts'
import { messages } from './protobuf-messages.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'
const magic = Buffer.from('k8s\0')

/**
 * Reads a body that a typed client sent as protobuf, for the few built-in kinds that kubectl and client-go send so;
 * answers are always JSON, which the same clients accept.
 * @throws {StatusError} UnsupportedMediaType for other kinds, BadRequest for what is not such a message.
 */
export function readProtobuf(body: Buffer): object {
  if (!body.subarray(0, 4).equals(magic)) throw badRequest('the body of the request is not a Kubernetes protobuf message')
  let typeMeta: Buffer | undefined
  let raw: Buffer = Buffer.alloc(0)
  for (const { number, bytes } of fields(body.subarray(4))) {
    if (number === 1) typeMeta = bytes
    else if (number === 2 && bytes) raw = bytes
  }
  const type = { apiVersion: '', kind: '' }
  for (const { number, bytes } of fields(typeMeta ?? Buffer.alloc(0))) {
    if (number === 1) type.apiVersion = bytes?.toString() ?? ''
    else if (number === 2) type.kind = bytes?.toString() ?? ''
  }
  const name = type.kind === 'DeleteOptions' ? type.kind : `${type.apiVersion} ${type.kind}`
  if (!Object.hasOwn(messages, name)) {
    throw new StatusError(
      'UnsupportedMediaType',
      `${type.apiVersion} ${type.kind} cannot be sent as ${protobufType} - accepted media types include: application/json, application/yaml`,
    )
  }
  return { ...type, ...readMessage(name, raw, 0) }
}

type Field = { number: number; bytes: Buffer | undefined; value: number }

function readMessage(name: string, bytes: Buffer, depth: number): Record<string, unknown> {
  if (depth > 20) throw malformed()
  const message: Record<string, unknown> = {}
  for (const field of fields(bytes)) {
    const known = messages[name]![field.number]
    if (!known) continue
    const [fieldName, type] = known
    if (type.startsWith('[]')) {
      const list = (message[fieldName] ?? []) as unknown[]
      message[fieldName] = list
      list.push(readValue(type.slice(2), field, depth))
    } else if (type.startsWith('{}')) {
      const map = (message[fieldName] ?? {}) as Record<string, unknown>
      message[fieldName] = map
      const { key, value } = readMapEntry(type.slice(2), field, depth)
      setOwn(map, key, value)
    } else {
      const value = readValue(type, field, depth)
      // Go's messages carry every empty string; in JSON they are absent.
      if (value !== '' && value !== undefined) message[fieldName] = value
    }
  }
  return message
}

function readMapEntry(type: string, { bytes }: Field, depth: number): { key: string; value: unknown } {
  let key = ''
  let value: unknown = ''
  for (const field of fields(bytes ?? Buffer.alloc(0))) {
    if (field.number === 1) key = field.bytes?.toString() ?? ''
    else if (field.number === 2) value = readValue(type, field, depth)
  }
  return { key, value }
}

function readValue(type: string, { bytes = Buffer.alloc(0), value }: Field, depth: number): unknown {
  switch (type) {
    case 's':
      return bytes.toString('utf8')
    case 'y':
      return bytes.toString('base64')
    case 'i':
      return value
    case 'b':
      return value !== 0
    case 'T':
      return readTime(bytes, 0)
    case 'M':
      return readTime(bytes, 6)
    case 'J': {
      for (const field of fields(bytes)) if (field.number === 1 && field.bytes) return parseRaw(field.bytes)
      return {}
    }
    default:
      return readMessage(type, bytes, depth + 1)
  }
}

function parseRaw(bytes: Buffer): unknown {
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
  for (const { number, value } of fields(bytes)) {
    if (number === 1) seconds = value
    else if (number === 2) nanos = value
  }
  const date = new Date(seconds * 1_000)
  if (Number.isNaN(date.getTime())) throw malformed()
  const fraction = decimals > 0 ? `.${String(nanos).padStart(9, '0').slice(0, decimals)}` : ''
  return `${date.toISOString().slice(0, 19)}${fraction}Z`
}

function* fields(bytes: Buffer): Generator<Field> {
  let at = 0
  const varint = (): number => {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++]
      if (byte === undefined) throw malformed()
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
        yield { number, bytes: undefined, value: varint() }
        break
      case 1:
        at += 8
        break
      case 2: {
        const length = varint()
        if (length < 0 || at + length > bytes.length) throw malformed()
        yield { number, bytes: bytes.subarray(at, at + length), value: 0 }
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
