import type { IncomingMessage } from 'node:http'
import { badRequest, StatusError } from '../../kubernetes/object/index.ts'

const maxBodyBytes = 1024 * 1024

/** The body of a request. @throws {StatusError} if it is not a JSON object, or larger than 1 MiB. */
export async function readJson(request: IncomingMessage): Promise<object> {
  // A form of another site cannot send this type without asking first.
  if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
    throw new StatusError('UnsupportedMediaType', 'use application/json')
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) throw new StatusError('RequestEntityTooLarge', `the body has more than ${maxBodyBytes} bytes`)
    chunks.push(chunk)
  }
  let value: unknown
  try {
    value = JSON.parse(Buffer.concat(chunks).toString())
  } catch (error) {
    throw badRequest(`the body is not JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw badRequest('the body must be an object')
  return value
}
