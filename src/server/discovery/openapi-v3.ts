import type { Kind, Registry } from '../registry/index.ts'
import { asciiJson } from '../storage/index.ts'
import { etagOf } from './etag.ts'
import { pathsOf } from './openapi-paths.ts'
import { schemasOf } from './openapi-schemas.ts'

/** `/openapi/v3`: where the document of each group and version is; the hash changes with the document. */
export function openApiV3Paths(registry: Registry): object {
  const paths: Record<string, { serverRelativeURL: string }> = {}
  for (const [group, versions] of registry.groups) {
    for (const [version, kinds] of versions) {
      const path = group ? `apis/${group}/${version}` : `api/${version}`
      const digest = etagOf(asciiJson(openApiV3(kinds.values())))
      paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${digest}` }
    }
  }
  return { paths }
}

/** `/openapi/v3/apis/GROUP/VERSION`. */
export function openApiV3(kinds: Iterable<Kind>): object {
  const all = [...kinds]
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: 'v1.36.3' },
    paths: Object.assign({}, ...all.map(kind => pathsOf(kind, 3))),
    components: { schemas: schemasOf(all, '#/components/schemas/') },
  }
}
