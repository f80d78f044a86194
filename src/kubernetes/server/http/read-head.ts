/** The head of a request. When the header text equals that of the previous request, `headers` is the same object. */
export type Head = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly contentLength: number
  /** The header fields as received, without the request line. */
  readonly fieldsText: string
}

/** Maximum length of a head that is parsed here. */
export const maxHeadBytes = 16 * 1024

const maxFields = 64
const requestLine = /^(GET|HEAD|POST|PUT|PATCH|DELETE) (\/[\w\-.~%!$&'()*+,;=:@/?[\]]*) HTTP\/1\.1$/
// The key of an `X-Remote-Extra-…` has dots and percent signs.
const fieldName = /^[A-Za-z][A-Za-z0-9\-.%_]*$/
const fieldValue = /^[\x20-\x7e]*$/
const contentLengthValue = /^(?:0|[1-9][0-9]{0,7})$/
/** A front proxy, such as the gateway, sends a field for each group of a user. node:http joins them in the same way. */
const repeatable = /^x-remote-(group$|extra-)/
// Each changes how the connection must be read, so node:http handles it.
const unusual = new Set(['transfer-encoding', 'upgrade', 'expect', 'trailer', 'te', 'keep-alive', 'proxy-connection', 'http2-settings'])

/**
 * Parses the head of a simple request: HTTP/1.1, a path, fields in printable ASCII of which only those of a front proxy are repeated, a Content-Length or no body. Undefined
 * for everything else, valid or not: node:http parses that, so that both parsers agree on every request accepted here, and node:http
 * rejects invalid ones (RFC 9112, section 11.2: request smuggling).
 * @param text the bytes before the empty line, as latin1.
 * @param last the previous head on the connection: clients repeat the same fields.
 */
export function readHead(text: string, last: Head | undefined): Head | undefined {
  const lineEnd = text.indexOf('\r\n')
  // Without any field there is no Host.
  if (lineEnd < 0) return undefined
  const line = requestLine.exec(text.slice(0, lineEnd))
  if (!line) return undefined
  const [, method, url] = line as unknown as [string, string, string]
  const fieldsText = text.slice(lineEnd + 2)
  if (last?.fieldsText === fieldsText) {
    const { headers, contentLength } = last
    return { method, url, headers, contentLength, fieldsText: last.fieldsText }
  }
  const headers = readFields(fieldsText)
  if (headers?.host === undefined) return undefined
  const length = headers['content-length']
  if (length !== undefined && !contentLengthValue.test(length)) return undefined
  const { connection } = headers
  if (connection !== undefined && connection.toLowerCase() !== 'keep-alive') return undefined
  return { method, url, headers, contentLength: length === undefined ? 0 : Number(length), fieldsText }
}

function readFields(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = Object.create(null)
  let count = 0
  for (let at = 0; at <= text.length; ) {
    if (++count > maxFields) return undefined
    let end = text.indexOf('\r\n', at)
    if (end < 0) end = text.length
    const colon = text.indexOf(':', at)
    if (colon < 0 || colon >= end) return undefined
    const name = text.slice(at, colon)
    const value = text.slice(colon + 1, end)
    if (!fieldName.test(name) || !fieldValue.test(value)) return undefined
    const key = name.toLowerCase()
    const before = headers[key]
    if (unusual.has(key) || (before !== undefined && !repeatable.test(key))) return undefined
    headers[key] = before === undefined ? value.trim() : `${before}, ${value.trim()}`
    at = end + 2
  }
  return headers
}
