import { gzipSync } from 'node:zlib'
import type { EndpointRequest } from './endpoint-request.ts'
import type { Endpoints } from './endpoint-server.ts'
import type { Expectation } from './fuzz-client.ts'

/** The bytes of a request, and what to expect of it. */
export function encodeEndpointRequest(request: EndpointRequest, endpoints: Endpoints): { bytes: Buffer; expectation: Expectation } {
  const { method, framing } = request
  const path = request.path.replaceAll('$uid', endpoints.stackUid)
  const body = Buffer.from(fillTokens(request.body, endpoints.joinTokens), 'latin1')
  const headers = [...request.headers, ...authorization(request.credential, endpoints.credentials, path)]
  const hasHost = headers.some(([name]) => name === 'Host')
  const head = (framed: readonly string[], target = path) =>
    Buffer.from(
      [
        `${method} ${target} HTTP/1.1`,
        ...(hasHost ? [] : ['Host: localhost']),
        ...headers.map(([name, value]) => `${name}: ${value}`),
        ...framed,
        '',
        '',
      ].join('\r\n'),
      'latin1',
    )
  const length = (size: number | string) => `Content-Length: ${size}`
  const whole = Buffer.concat([head([length(body.length)]), body])
  const chunk = (bytes: Buffer) => Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
  const chunks = Buffer.concat([
    ...(body.length > 0 ? [chunk(body.subarray(0, 1)), ...(body.length > 1 ? [chunk(body.subarray(1))] : [])] : []),
    Buffer.from('0\r\n\r\n'),
  ])
  const isStream = path.includes('?') && /logs/i.test(path)
  // What follows a request line or a head that is no HTTP is up to the server.
  const isClean =
    /^[A-Z]{1,20}$/.test(method) &&
    method !== 'CONNECT' &&
    /^[\x21-\x7e]+$/.test(path) &&
    !request.headers.some(([name]) => ['Expect', 'Upgrade', 'Connection'].includes(name))
  const one: Expectation = !isClean ? 'any' : isStream ? 'head' : 'one'
  switch (framing) {
    case 'length':
      return { bytes: whole, expectation: one }
    case 'chunked':
      return { bytes: Buffer.concat([head(['Transfer-Encoding: chunked']), chunks]), expectation: one }
    case 'gzip': {
      const packed = gzipSync(body)
      return { bytes: Buffer.concat([head(['Content-Encoding: gzip', length(packed.length)]), packed]), expectation: one }
    }
    case 'too-long':
      return { bytes: Buffer.concat([head([length(body.length + 10)]), body]), expectation: 'any' }
    case 'too-short':
      return { bytes: Buffer.concat([head([length(Math.max(0, body.length - 5))]), body]), expectation: 'any' }
    case 'huge-length':
      return { bytes: Buffer.concat([head([length('99999999999')]), body]), expectation: 'any' }
    case 'bad-length':
      return { bytes: Buffer.concat([head([length('-1')]), body]), expectation: 'any' }
    case 'two-lengths':
      return { bytes: Buffer.concat([head([length(body.length), length(body.length + 1)]), body]), expectation: 'any' }
    case 'length-and-chunked':
      return { bytes: Buffer.concat([head([length(body.length), 'Transfer-Encoding: chunked']), chunks]), expectation: 'any' }
    case 'bad-chunk':
      return { bytes: Buffer.concat([head(['Transfer-Encoding: chunked']), Buffer.from('zz\r\n'), body]), expectation: 'any' }
    case 'pipelined':
      return { bytes: Buffer.concat([whole, whole, head([length(0)], '/healthz')]), expectation: 'any' }
    case 'truncated':
      return { bytes: whole.subarray(0, Math.floor(whole.length / 2)), expectation: 'abort' }
    case 'aborted':
      return { bytes: whole, expectation: 'abort' }
  }
}

function authorization(credential: string, credentials: Endpoints['credentials'], path: string): [string, string][] {
  if (credential === 'none') return []
  if (credential.startsWith('changed:')) return [['Authorization', `Bearer ${changed(credentials[credential.slice(8)] ?? '')}`]]
  const token = credentials[credential]
  if (token === undefined) return [['Authorization', credential]]
  if (credential === 'stack-token' && path.length % 2 === 0)
    return [['Authorization', `Basic ${Buffer.from(`x:${token}`).toString('base64')}`]]
  return [['Authorization', `Bearer ${token}`]]
}

/** One character differs, near the end: in the signature, or in the secret. */
const changed = (token: string) => `${token.slice(0, -10)}${token.at(-10) === 'A' ? 'B' : 'A'}${token.slice(-9)}`

function fillTokens(body: string, tokens: Endpoints['joinTokens']): string {
  const { valid = '', used = '', expired = '' } = tokens
  const [prefix, id, , pin] = valid.split('.')
  const other = [prefix, id, 'b'.repeat(43), pin].join('.')
  return body
    .replace('$valid', valid)
    .replace('$used', used)
    .replace('$expired', expired)
    .replace('$changed', other)
    .replace('$short', valid.slice(0, -1))
}
