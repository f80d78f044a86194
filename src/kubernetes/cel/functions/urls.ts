import { chargeCost } from '../../object/cost-limit.ts'
import { opaqueNames } from '../declarations.ts'
import { ArrayListValue, CelError, Opaque, PlainMap } from '../values.ts'
import { asString, type FunctionTable, unwrapOpaque } from './implementation.ts'

/** URLs as Go's `url.ParseRequestURI` parses them: absolute URLs or absolute paths. */
export const urls: FunctionTable = {
  url: text => {
    const source = asString(text)
    chargeCost(source.length >> 2)
    const parts = parseUrl(source)
    if (typeof parts === 'string') {
      throw new CelError(`URL parse error during conversion from string: parse ${JSON.stringify(source.slice(0, 200))}: ${parts}`)
    }
    return new Opaque(opaqueNames.URL, parts, source)
  },
  isURL: text => {
    chargeCost(asString(text).length >> 2)
    return typeof parseUrl(asString(text)) !== 'string'
  },
  getScheme: value => url(value!).scheme,
  getHost: value => url(value!).host,
  getHostname: value =>
    url(value!)
      .host.replace(/:\d*$/, '')
      .replace(/^\[(.*)\]$/s, '$1'),
  getPort: value => /:(\d*)$/.exec(url(value!).host)?.[1] ?? '',
  getEscapedPath: value => url(value!).path,
  getQuery: value => {
    const found = new Map<string, string[]>()
    const { query } = url(value!)
    chargeCost(query.length >> 2)
    for (const [key, each] of new URLSearchParams(query)) {
      const values = found.get(key) ?? []
      values.push(each)
      found.set(key, values)
    }
    const result = new PlainMap()
    for (const [key, values] of found) result.insert(key, new ArrayListValue(values))
    return result
  },
}

class UrlParts {
  readonly scheme: string
  readonly host: string
  readonly path: string
  readonly query: string

  constructor(scheme: string, host: string, path: string, query: string) {
    this.scheme = scheme
    this.host = host
    this.path = path
    this.query = query
  }
}

const url = (value: Parameters<typeof unwrapOpaque>[0]): UrlParts =>
  unwrapOpaque(value, opaqueNames.URL, (inner): inner is UrlParts => inner instanceof UrlParts)

/** The parts of a URL, or why it is invalid. */
function parseUrl(text: string): UrlParts | string {
  if (text === '') return 'empty url'
  if (/\p{Cc}/u.test(text)) return 'net/url: invalid control character in URL'
  const [, scheme = '', rest = ''] = /^(?:([a-zA-Z][a-zA-Z0-9+.-]*):)?(.*)$/s.exec(text) ?? []
  const mark = rest.indexOf('?')
  const before = mark < 0 ? rest : rest.slice(0, mark)
  const query = mark < 0 ? '' : rest.slice(mark + 1)
  if (!before.startsWith('/')) return scheme === '' ? 'invalid URI for request' : new UrlParts(scheme.toLowerCase(), '', '', query)
  const authority = scheme !== '' || !before.startsWith('///') ? /^\/\/([^/]*)(.*)$/s.exec(before) : null
  const path = authority ? authority[2]! : before
  if (/%(?![0-9a-fA-F]{2})/.test(path)) return `invalid URL escape ${JSON.stringify(/%.{0,2}/.exec(path)?.[0])}`
  const host = (authority?.[1] ?? '').replace(/^.*@/s, '')
  if (!/^(\[[0-9a-fA-F:.%]+\]|[^[\]:\s]*)(:\d*)?$/.test(host) || / /.test(host)) return 'invalid character in host name'
  return new UrlParts(scheme.toLowerCase(), host, escapePath(path), query)
}

// Go escapes characters that are not allowed in a path.
function escapePath(path: string): string {
  return path.replace(/[^A-Za-z0-9\-_.~!$&'()*+,;=:@/%[\]]+/g, part => encodeURIComponent(part.toWellFormed()))
}
