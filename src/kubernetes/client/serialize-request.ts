import type { TransportRequest } from './transport.ts'

const forbiddenInPath = /[^\x21-\x7e]/
const forbiddenInHeader = /[^\t\x20-\x7e\x80-\xff]/

/** Header lines as they were last sent, by name: most stay the same from request to request. */
export type SerializedHeaders = Map<string, { value: string; line: string }>

/**
 * The text of an HTTP/1.1 request; `bodyBytes` is the length of `body` in UTF-8.
 * @throws {TypeError} for a path or header that would end its line.
 */
export function serializeRequest(
  { method, path, headers }: TransportRequest,
  host: string,
  body: string,
  bodyBytes: number,
  cache: SerializedHeaders,
): string {
  if (forbiddenInPath.test(path)) throw new TypeError(`path ${JSON.stringify(path)} must be percent-encoded`)
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] as string | string[]
    if (Array.isArray(value)) for (const each of value) text += headerLine(name, each)
    else {
      let cached = cache.get(name)
      if (cached?.value !== value) {
        cached = { value, line: headerLine(name, value) }
        cache.set(name, cached)
      }
      text += cached.line
    }
  }
  if (bodyBytes > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH') text += `content-length: ${bodyBytes}\r\n`
  return `${text}\r\n${body}`
}

function headerLine(name: string, value: string): string {
  if (forbiddenInHeader.test(value)) throw new TypeError(`header ${name} contains a character that is not allowed in a header`)
  return `${name}: ${value}\r\n`
}
