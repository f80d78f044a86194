import type { Registry } from '../registry/index.ts'

export function openApiV2(_registry: Registry): object {
  return { swagger: '2.0', info: { title: 'Kubernetes', version: 'v1.36.3' }, paths: {}, definitions: {} }
}
