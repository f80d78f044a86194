import type { Registry } from '../registry/index.ts'
import { pathsOf } from './openapi-paths.ts'
import { schemasOf } from './openapi-schemas.ts'
import { openApiV2Schemas } from './openapi-v2-schemas.ts'

/** `/openapi/v2` as JSON: all kinds in one document. */
export function openApiV2(registry: Registry): object {
  const all = [...registry.kinds()]
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: 'v1.36.3' },
    paths: Object.assign({}, ...all.map(kind => pathsOf(kind, 2))),
    definitions: openApiV2Schemas(schemasOf(all, '#/definitions/')),
  }
}
