import { badRequest, StatusError } from '../../kubernetes/object/index.ts'
import type { ClientRequest } from './client-request.ts'

const maxBodyBytes = 3 * 1024 * 1024
/** Headers of one connection, which are not passed on, and those by which a client could name another user or be asked in a form that cannot be merged. */
const notForwarded =
  /^(:.*|host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|authorization|x-remote-.*|x-oarlock-.*|expect)$/

/**
 * @param count is called with the length of each part.
 * @throws {StatusError} RequestEntityTooLarge above 3 MiB, BadRequest if the client has disconnected before the end, and what `count` throws.
 */
export async function readBody(request: ClientRequest, count: (bytes: number) => void): Promise<Uint8Array> {
  if (request.body) {
    count(request.body.length)
    return request.body
  }
  return await new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (error: unknown) => {
      // The rest is read and discarded, so that the response can reach the client.
      request.removeAllListeners('data')
      request.resume()
      reject(error)
    }
    request.on('data', chunk => {
      size += chunk.length
      if (size > maxBodyBytes) return fail(new StatusError('RequestEntityTooLarge', `the body must be at most ${maxBodyBytes} bytes`))
      try {
        count(chunk.length)
        chunks.push(chunk)
      } catch (error) {
        fail(error)
      }
    })
    request.on('end', () => resolve(Buffer.concat(chunks)))
    request.on('error', () => reject(badRequest('the body of the request ended early')))
  })
}

/** The headers of a client that a partition gets. */
export function forwardedHeaders({ headers }: ClientRequest): Record<string, string> {
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
