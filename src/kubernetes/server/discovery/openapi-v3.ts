import type { Kind, Registry } from '../registry/index.ts'
import { stringifyAsciiJson } from '../storage/index.ts'
import { etagOf } from './etag.ts'
import { pathsOf } from './openapi-paths.ts'
import { schemasOf } from './openapi-schemas.ts'

type GroupDocument = { readonly kinds: readonly Kind[]; readonly text: string; readonly etag: string }

/**
 * OpenAPI 3: a document for each group and version, created on first use and again only after its own kinds changed. Creating all of them
 * takes 0.1 s, which a new definition must not cost every client.
 */
export class OpenApiV3 {
  readonly #registry: Registry
  readonly #documents = new Map<string, GroupDocument>()

  constructor(registry: Registry) {
    this.#registry = registry
  }

  /** `/openapi/v3`: the URL of the document of each group and version; its hash changes with the document. */
  paths(): object {
    const paths: Record<string, { serverRelativeURL: string }> = {}
    for (const [group, versions] of this.#registry.groups) {
      for (const version of versions.keys()) {
        const path = group ? `apis/${group}/${version}` : `api/${version}`
        paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${this.document(group, version)!.etag}` }
      }
    }
    for (const key of this.#documents.keys()) if (!this.#kindsOf(key)) this.#documents.delete(key)
    return { paths }
  }

  /** `/openapi/v3/apis/GROUP/VERSION`; undefined if the version does not exist. */
  document(group: string, version: string): { text: string; etag: string } | undefined {
    const key = `${group}/${version}`
    const kinds = this.#kindsOf(key)
    if (!kinds) return undefined
    const made = this.#documents.get(key)
    if (made && made.kinds.length === kinds.length && made.kinds.every((kind, index) => kind === kinds[index])) return made
    const text = stringifyAsciiJson(openApiV3(kinds))
    const document: GroupDocument = { kinds, text, etag: etagOf(text) }
    this.#documents.set(key, document)
    return document
  }

  #kindsOf(key: string): readonly Kind[] | undefined {
    const slash = key.indexOf('/')
    const kinds = this.#registry.groups.get(key.slice(0, slash))?.get(key.slice(slash + 1))
    return kinds && [...kinds.values()]
  }
}

function openApiV3(kinds: readonly Kind[]): object {
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.36.3' },
    paths: Object.assign({}, ...kinds.map(kind => pathsOf(kind, 3))),
    components: { schemas: schemasOf(kinds, '#/components/schemas/') },
  }
}
