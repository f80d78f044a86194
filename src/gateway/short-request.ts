import { isUtf8 } from 'node:buffer'
import { readRoute } from '../kubernetes/object/route.ts'

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
 * Whether a request and its response are texts of one object: a read of one object, or a write. These take a way with less work. What may be long (lists,
 * logs), or is no text (protobuf), does not.
 */
export function isShortRequest(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | undefined,
): boolean {
  if (headers.accept?.includes('protobuf') || (body && (body.length > maxBodyBytes || !isUtf8(body)))) return false
  const route = readRoute(path.split('?', 1)[0] ?? '')
  if (route.type !== 'resource' || !shortSubresources.has(route.subresource)) return false
  return method === 'GET' ? route.name !== '' : writes.has(method) && (method !== 'DELETE' || route.name !== '')
}
