import { hash } from 'node:crypto'
import { StatusError } from '../../kube/index.ts'
import type { Registry } from '../registry/index.ts'
import { asciiJson } from '../storage/index.ts'
import { aggregated, groupDocument, groupList, resourceList } from './api-groups.ts'
import { openApiV2 } from './openapi-v2.ts'
import { openApiV3, openApiV3Paths } from './openapi-v3.ts'

export type Found = { code: number; contentType: string; text: string; etag?: string }

const aggregatedType = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'

/** What clients ask to learn which resources there are. Answers are made once for each state of the registry. */
export class Discovery {
  readonly version: string
  readonly #registry: Registry
  readonly #cache = new Map<string, Found | undefined>()
  #generation = -1

  constructor(registry: Registry) {
    this.#registry = registry
    this.version = versionDocument()
  }

  /**
   * The document at `path`, or undefined when there is none.
   * @throws {StatusError} NotAcceptable for OpenAPI v2 as protobuf only.
   */
  find(path: string, accept: string | undefined, ifNoneMatch: string | undefined): Found | undefined {
    if (this.#generation !== this.#registry.generation) {
      this.#cache.clear()
      this.#generation = this.#registry.generation
    }
    const wantsAggregated =
      accept?.includes('as=APIGroupDiscoveryList') === true && accept.includes('v=v2') && (path === '/api' || path === '/apis')
    if (path === '/openapi/v2' && accept?.includes('protobuf') && !accept.includes('json') && !accept.includes('*/*')) {
      throw new StatusError('NotAcceptable', 'only the following media types are accepted: application/json')
    }
    const key = (wantsAggregated && acceptsV2(accept) ? '+' : '') + (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path)
    // Strangers' paths are not remembered: only documents that exist are.
    let found = this.#cache.get(key)
    if (!found) {
      found = this.#make(key)
      if (!found) return undefined
      this.#cache.set(key, found)
    }
    if (found.etag && ifNoneMatch?.includes(found.etag)) return { ...found, code: 304, text: '' }
    return found
  }

  #make(key: string): Found | undefined {
    if (key === '+/api' || key === '+/apis') return document(aggregated(this.#registry, key === '+/api'), aggregatedType, true)
    const { groups } = this.#registry
    const parts = key.split('/').slice(1)
    switch (parts[0]) {
      case 'api':
        if (parts.length === 1)
          return document({ kind: 'APIVersions', versions: [...(groups.get('')?.keys() ?? [])], serverAddressByClientCIDRs: [] })
        break
      case 'apis':
        if (parts.length === 1) return document(groupList(this.#registry))
        break
      case 'openapi':
        if (key === '/openapi/v2') return document(openApiV2(this.#registry), 'application/json', true)
        if (key === '/openapi/v3') return document(openApiV3Paths(this.#registry))
        break
      case '':
        return document({ paths: ['/api', '/apis', '/healthz', '/livez', '/openapi/v2', '/openapi/v3', '/readyz', '/version'] })
    }
    const [group, version, more] = parts[0] === 'api' ? ['', parts[1], parts[2]] : [parts[1] ?? '', parts[2], parts[3]]
    if (parts[0] === 'openapi' && parts[1] === 'v3') {
      const [g, v] = parts[2] === 'api' ? ['', parts[3]] : [parts[3] ?? '', parts[4]]
      const kinds = groups.get(g ?? '')?.get(v ?? '')
      return kinds && document(openApiV3(kinds.values()), 'application/json', true)
    }
    if ((parts[0] !== 'api' && parts[0] !== 'apis') || more !== undefined) return undefined
    const versions = groups.get(group)
    if (!versions) return undefined
    if (version === undefined) return document(groupDocument(group, [...versions.keys()]))
    const kinds = versions.get(version)
    return kinds && document(resourceList(group ? `${group}/${version}` : version, kinds.values()))
  }
}

function acceptsV2(accept: string | undefined): boolean {
  return accept?.split(',').some(range => range.includes('as=APIGroupDiscoveryList') && /;\s*v=v2(;|\s|$)/.test(`${range};`)) ?? false
}

function document(value: object, contentType = 'application/json', withEtag = false): Found {
  const text = asciiJson(value)
  return { code: 200, contentType, text, ...(withEtag && { etag: `"${hash('sha256', text).slice(0, 32).toUpperCase()}"` }) }
}

function versionDocument(): string {
  return JSON.stringify({
    major: '1',
    minor: '36',
    emulationMajor: '1',
    emulationMinor: '36',
    minCompatibilityMajor: '1',
    minCompatibilityMinor: '35',
    gitVersion: 'v1.36.3+oarlock',
    gitCommit: '',
    gitTreeState: 'clean',
    buildDate: '2026-01-01T00:00:00Z',
    goVersion: 'none',
    compiler: 'node',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  })
}
