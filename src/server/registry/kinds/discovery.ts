import type { Row } from './row.ts'

export const discoveryKinds: readonly Row[] = [
  {
    group: 'discovery.k8s.io',
    kind: 'EndpointSlice',
    plural: 'endpointslices',
    schema: 'io.k8s.api.discovery.v1.EndpointSlice',
    hasGeneration: true,
  },
]
