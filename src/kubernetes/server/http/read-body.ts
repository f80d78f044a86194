import { badRequest, StatusError } from '../../object/index.ts'
import type { HttpRequest } from './handler-types.ts'

/** What an object and a patch may be long at most: 3 MB, as in Kubernetes. */
export const maxBodyBytes = 3 * 1024 * 1024

const empty = Buffer.alloc(0)

/**
 * Reads the body of a request.
 * @throws {StatusError} RequestEntityTooLarge, or BadRequest when the client gave up in the middle.
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
        // The rest is read and thrown away for a moment, so that the answer can reach the client.
        request.removeAllListeners('data')
        request.resume()
        reject(tooLarge('more'))
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
