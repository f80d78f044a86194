import type { Row } from './row.ts'

export const schedulingKinds: readonly Row[] = [
  {
    group: 'scheduling.k8s.io',
    kind: 'PriorityClass',
    plural: 'priorityclasses',
    shortNames: ['pc'],
    cluster: true,
    schema: 'io.k8s.api.scheduling.v1.PriorityClass',
    hasGeneration: true,
  },
]
