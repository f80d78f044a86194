import { gunzipSync } from 'node:zlib'
import type { RecordedExchange } from './recording.ts'

/** The body of a request, unpacked. */
export function bodyOf(exchange: Pick<RecordedExchange, 'body'>): string {
  return unpack(Buffer.from(exchange.body, 'base64'))
}

export const unpack = (body: Buffer): string => (body[0] === 0x1f && body[1] === 0x8b ? gunzipSync(body) : body).toString()
