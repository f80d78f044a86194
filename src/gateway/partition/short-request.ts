import { isUtf8 } from 'node:buffer'
import { type ResourceRoute, readRoute } from '../../kubernetes/object/route.ts'
import type { GatewayUser } from '../request/index.ts'

/** A response that has arrived as a whole. */
export class WholeBody implements AsyncIterable<Buffer> {
  readonly isEnded = true
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void, undefined> {
    if (this.text !== '') yield Buffer.from(this.text)
  }
}

const writes: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])
const shortSubresources: ReadonlySet<string> = new Set(['', 'status', 'scale', 'finalize', 'binding', 'token', 'approval'])
const maxBodyBytes = 256 * 1024

/**
 * The route of a request whose text, and that of its response, is one object: a read of one object, or a write. These take a way with less work. Undefined for
 * what may be long (lists, logs), or is no text (protobuf).
 */
export function shortRoute(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): ResourceRoute | undefined {
  if (headers.accept?.includes('protobuf') || (body && (body.length > maxBodyBytes || !isUtf8(body)))) return undefined
  const route = readRoute(path.split('?', 1)[0] ?? '')
  if (route.type !== 'resource' || !shortSubresources.has(route.subresource)) return undefined
  const isShort = method === 'GET' ? route.name !== '' : writes.has(method) && (method !== 'DELETE' || route.name !== '')
  return isShort ? route : undefined
}

/**
 * As which requests a short one may share a connection to a server that answers reads in the order of their arrival: as those of the same user. Undefined:
 * none. Writes wait for webhooks, each for its own, and those of Leases for nothing that is not one.
 */
export function batchKeyOf(method: string, { plural }: ResourceRoute, { name }: GatewayUser): string | undefined {
  return method === 'GET' && plural !== 'leases' ? name : undefined
}

/** Whose requests wait for each other: those of a user, apart from those for Leases, which must be renewed in time. */
export function flowOf({ plural }: ResourceRoute, { name }: GatewayUser): string {
  return plural === 'leases' ? `leases of ${name}` : `user ${name}`
}
