import type { Row } from './row.ts'

export const nodeKinds: readonly Row[] = [
  {
    kind: 'Node',
    plural: 'nodes',
    shortNames: ['no'],
    cluster: true,
    schema: 'io.k8s.api.core.v1.Node',
    hasStatus: true,
  },
]
