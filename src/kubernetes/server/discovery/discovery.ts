import { yaml } from '../../util/index.ts'
import type { Registry } from '../registry/index.ts'
import { stringifyAsciiJson } from '../storage/index.ts'
import { acceptRanges, notAcceptable, syntaxOf } from '../wire/index.ts'
import { aggregatedDiscovery, groupDocument, groupList, resourceList } from './api-groups.ts'
import { etagOf } from './etag.ts'
import { openApiV2 } from './openapi-v2.ts'
import { openApiV2Protobuf } from './openapi-v2-protobuf.ts'
import { OpenApiV3 } from './openapi-v3.ts'

/** A document, 304 if the client has it already, 301 to the URL with the current hash, or 406. */
export type DiscoveryResponse = {
  readonly code: 200 | 301 | 304 | 406
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
  /** The same as long as the body is. */
  readonly cacheKey?: object
}

export type DiscoveryRequest = {
  /** Without the query. */
  readonly path: string
  readonly accept: string | undefined
  readonly ifNoneMatch: string | undefined
  /** The query parameter `hash` of OpenAPI 3 paths. */
  readonly hash: string | undefined
}

type Format = 'json' | 'yaml' | 'aggregated' | 'protobuf'
type Document = { readonly contentType: string; readonly body: string | Buffer; readonly etag: string }

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
/** The media types in which client-go requests OpenAPI 2: the current one and the previous one. */
const protobufTypes = [
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
]
const yearMs = 365 * 86_400_000

/** Serves the documents that describe the API. A document is created once for each state of the registry. */
export class Discovery {
  readonly version: string
  readonly #registry: Registry
  readonly #openApiV3: OpenApiV3
  readonly #cache = new Map<string, Document>()
  #generation = -1

  constructor(registry: Registry) {
    this.#registry = registry
    this.#openApiV3 = new OpenApiV3(registry)
    this.version = versionDocument()
  }

  /**
   * The document at a path; undefined if there is none.
   * @throws {StatusError} NotAcceptable if it is not served in a requested type.
   */
  find({ path, accept, ifNoneMatch, hash: desired }: DiscoveryRequest): DiscoveryResponse | undefined {
    if (this.#generation !== this.#registry.generation) {
      this.#cache.clear()
      this.#generation = this.#registry.generation
    }
    const documentPath = path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path
    const isOpenApi = documentPath.startsWith('/openapi/')
    // Only documents that exist are cached, so that requests cannot fill the cache.
    if (!this.#cache.has(`json ${documentPath}`) && !this.#cacheDocument('json', documentPath)) return undefined
    const form = isOpenApi ? openApiForm(documentPath, accept) : discoveryForm(documentPath, accept)
    if (!form) return { code: 406, contentType: '', headers: { Vary: 'Accept' }, body: '' }
    const document = this.#cache.get(`${form} ${documentPath}`) ?? this.#cacheDocument(form, documentPath)
    if (!document) return undefined
    const { contentType, body, etag } = document
    const headers: Record<string, string> = {}
    if (isOpenApi || form === 'aggregated') {
      headers.ETag = `"${etag}"`
      headers.Vary = documentPath === '/openapi/v2' ? 'Accept-Encoding, Accept' : 'Accept'
    }
    if (form === 'aggregated') headers['Cache-Control'] = 'public'
    if (desired && documentPath.startsWith('/openapi/v3/')) {
      if (desired !== etag) return { code: 301, contentType: '', headers: { Location: `${documentPath}?hash=${etag}` }, body: '' }
      headers['Cache-Control'] = 'public, immutable'
      headers.Expires = new Date(Date.now() + yearMs).toUTCString()
    }
    if (headers.ETag && ifNoneMatch?.includes(headers.ETag)) return { code: 304, contentType: '', headers, body: '' }
    return { code: 200, contentType, headers, body, cacheKey: document }
  }

  #cacheDocument(form: Format, documentPath: string): Document | undefined {
    const document = this.#createDocument(form, documentPath)
    if (document) this.#cache.set(`${form} ${documentPath}`, document)
    return document
  }

  #createDocument(form: Format, documentPath: string): Document | undefined {
    if (form === 'aggregated') return jsonDocument(aggregatedDiscovery(this.#registry, documentPath === '/api'), aggregatedType)
    if (documentPath.startsWith('/openapi/v3/')) {
      const named = groupVersionAt(documentPath)
      const found = named && this.#openApiV3.document(...named)
      return found && { contentType: 'application/json', body: found.text, etag: found.etag }
    }
    const value = this.#valueAt(documentPath)
    if (!value) return undefined
    switch (form) {
      case 'json':
        return jsonDocument(value)
      case 'yaml': {
        const body = yaml().stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 })
        return { contentType: 'application/yaml', body, etag: '' }
      }
      case 'protobuf':
        // Both encodings of a document have the same ETag; caches distinguish them by Accept.
        return { contentType: protobufTypes[0]!, body: openApiV2Protobuf(value), etag: this.#cache.get(`json ${documentPath}`)?.etag ?? '' }
    }
  }

  #valueAt(documentPath: string): object | undefined {
    const registry = this.#registry
    const { groups } = registry
    const [, root = '', first, second, third, ...more] = documentPath.split('/')
    if (documentPath === '/openapi/v2') return openApiV2(registry)
    if (documentPath === '/openapi/v3') return this.#openApiV3.paths()
    if (more.length > 0) return undefined
    switch (root) {
      case '':
        return { paths: ['/api', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version'] }
      case 'api': {
        if (first === undefined)
          return { kind: 'APIVersions', versions: [...(groups.get('')?.keys() ?? [])], serverAddressByClientCIDRs: [] }
        const kinds = second === undefined ? groups.get('')?.get(first) : undefined
        return kinds && resourceList(first, kinds.values())
      }
      case 'apis': {
        if (first === undefined) return groupList(registry)
        const versions = first !== '' && third === undefined ? groups.get(first) : undefined
        if (second === undefined) return versions && groupDocument(first, [...versions.keys()])
        const kinds = versions?.get(second)
        return kinds && resourceList(`${first}/${second}`, kinds.values())
      }
    }
    return undefined
  }
}

/** The group and version of a path below `/openapi/v3/`; undefined if it has none. */
function groupVersionAt(documentPath: string): [group: string, version: string] | undefined {
  const [root, ...rest] = documentPath.slice('/openapi/v3/'.length).split('/')
  const [group, version, ...more] = root === 'api' ? ['', ...rest] : rest
  const isNamed = root === 'api' ? group === '' : root === 'apis' && Boolean(group)
  return isNamed && version !== undefined && more.length === 0 ? [group ?? '', version] : undefined
}

/** @throws {StatusError} NotAcceptable. */
function discoveryForm(documentPath: string, accept: string | undefined): Format {
  if (!accept) return 'json'
  const ranges = acceptRanges(accept)
  for (const { type, parameters } of ranges) {
    const syntax = syntaxOf(type)
    if (!syntax) continue
    if (!parameters.some(parameter => parameter.startsWith('as='))) return syntax
    const isAggregated = ['as=APIGroupDiscoveryList', 'g=apidiscovery.k8s.io', 'v=v2'].every(part => parameters.includes(part))
    if (isAggregated && syntax === 'json' && (documentPath === '/api' || documentPath === '/apis')) return 'aggregated'
  }
  throw notAcceptable(ranges.some(({ type }) => syntaxOf(type)))
}

// In Kubernetes, OpenAPI has a handler of its own: other media types, and a 406 without a body.
function openApiForm(documentPath: string, accept: string | undefined): Format | undefined {
  if (!accept || documentPath === '/openapi/v3') return 'json'
  for (const { type } of acceptRanges(accept)) {
    if (type === 'application/json' || type === 'application/*' || type === '*/*') return 'json'
    if (documentPath === '/openapi/v2' && protobufTypes.includes(type)) return 'protobuf'
  }
  return undefined
}

function jsonDocument(value: object, contentType = 'application/json'): Document {
  const body = stringifyAsciiJson(value)
  return { contentType, body, etag: etagOf(body) }
}

/** The version of the served API. */
export const kubernetesVersion = 'v1.36.3+oarlock'

function versionDocument(): string {
  return JSON.stringify({
    major: '1',
    minor: '36',
    emulationMajor: '1',
    emulationMinor: '36',
    minCompatibilityMajor: '1',
    minCompatibilityMinor: '35',
    gitVersion: kubernetesVersion,
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '2026-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  })
}
