import type { IncomingMessage } from 'node:http'
import { StatusError } from '../kubernetes/object/index.ts'

const maxBodyBytes = 3 * 1024 * 1024
/** Headers of one connection, which are not passed on, and those by which a client could name another user or be asked in a form that cannot be merged. */
const notForwarded =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|authorization|x-remote-.*|x-oarlock-.*|expect)$/

/** @param count is called with the length of each part. @throws {StatusError} RequestEntityTooLarge above 3 MiB, and what `count` throws. */
export async function readBody(request: IncomingMessage, count: (bytes: number) => void): Promise<Uint8Array> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) throw new StatusError('RequestEntityTooLarge', `the body must be at most ${maxBodyBytes} bytes`)
    count(chunk.length)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

/** The headers of a client that a partition gets. */
export function forwardedHeaders({ headers }: IncomingMessage): Record<string, string> {
  const forwarded: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !notForwarded.test(name)) forwarded[name] = Array.isArray(value) ? value.join(', ') : value
  return forwarded
}

/** What can be merged without decoding: JSON, also as a Table or as metadata only. */
export function jsonOf(accept = 'application/json'): string {
  const ranges = accept
    .split(',')
    .map(range => range.trim())
    .filter(range => range.startsWith('application/json'))
  return ranges.join(', ') || 'application/json'
}
