import type { TransportRequest } from './transport.ts'

const forbiddenInPath = /[^\x21-\x7e]/
const forbiddenInHeader = /[^\t\x20-\x7e\x80-\xff]/

/** These are mostly the same from request to request. Only of them: a gateway passes on headers with any name, each of which would stay in memory. */
const repeatedNames: ReadonlySet<string> = new Set([
  ...['accept', 'authorization', 'content-type', 'user-agent', 'impersonate-user'],
  ...['x-remote-user', 'x-remote-uid', 'x-oarlock-seen-version'],
])

/** Lines of {@link repeatedNames} as they were last sent, by name. */
export type SerializedHeaders = Map<string, { value: string; line: string }>

/**
 * The bytes of an HTTP/1.1 request, each a character: headers are that already, and the body becomes its UTF-8.
 * @throws {TypeError} for a path or header that would end its line.
 */
export function serializeRequest(
  { method, path, headers }: TransportRequest,
  host: string,
  body: string,
  cache: SerializedHeaders,
): string {
  if (forbiddenInPath.test(path)) throw new TypeError(`path ${JSON.stringify(path)} must be percent-encoded`)
  let text = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] as string | string[]
    if (Array.isArray(value)) for (const each of value) text += headerLine(name, each)
    else if (!repeatedNames.has(name)) text += headerLine(name, value)
    else {
      let cached = cache.get(name)
      if (cached?.value !== value) {
        cached = { value, line: headerLine(name, value) }
        cache.set(name, cached)
      }
      text += cached.line
    }
  }
  const bytes = latin1OfUtf8(body)
  if (bytes.length > 0 || method === 'POST' || method === 'PUT' || method === 'PATCH') text += `content-length: ${bytes.length}\r\n`
  return `${text}\r\n${bytes}`
}

/** The bytes of a text in UTF-8, each a character: the form that headers have. */
export function latin1OfUtf8(text: string): string {
  // Most bodies are ASCII, which is the same in both.
  return Buffer.byteLength(text) === text.length ? text : Buffer.from(text).toString('latin1')
}

function headerLine(name: string, value: string): string {
  if (forbiddenInHeader.test(value)) throw new TypeError(`header ${name} contains a character that is not allowed in a header`)
  return `${name}: ${value}\r\n`
}
