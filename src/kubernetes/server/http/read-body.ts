import { badRequest, StatusError } from '../../object/index.ts'
import type { HttpRequest } from './handler-types.ts'

/** Maximum length of a request body: 3 MiB, as in Kubernetes. */
export const maxBodyBytes = 3 * 1024 * 1024

const empty = Buffer.alloc(0)

/**
 * Reads the body of a request.
 * @throws {StatusError} RequestEntityTooLarge, or BadRequest when the client disconnected before the end.
 */
export function readBody(request: HttpRequest): Promise<Buffer> {
  if (request.body) return Promise.resolve(request.body)
  const declared = Number(request.headers['content-length'] ?? 0)
  if (declared > maxBodyBytes) return Promise.reject(tooLarge(`${declared}`))
  return new Promise((resolve, reject) => {
    let first: Buffer | undefined
    let chunks: Buffer[] | undefined
    let bytes = 0
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBodyBytes) {
        // The rest is read and discarded, so that the response can reach the client.
        request.removeAllListeners('data')
        request.resume()
        reject(tooLarge('a longer one'))
        return
      }
      if (first === undefined) first = chunk
      else if (chunks) chunks.push(chunk)
      else chunks = [first, chunk]
    })
    request.on('end', () => resolve(chunks ? Buffer.concat(chunks, bytes) : (first ?? empty)))
    request.on('error', () => reject(badRequest('the body of the request ended early')))
  })
}

function tooLarge(got: string): StatusError {
  return new StatusError('RequestEntityTooLarge', `the body of the request must be at most ${maxBodyBytes} bytes, got ${got}`)
}
