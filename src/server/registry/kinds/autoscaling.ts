import type { Row } from './row.ts'

export const autoscalingKinds: readonly Row[] = [
  {
    group: 'autoscaling',
    version: 'v2',
    kind: 'HorizontalPodAutoscaler',
    plural: 'horizontalpodautoscalers',
    shortNames: ['hpa'],
    categories: ['all'],
    schema: 'io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler',
    hasStatus: true,
  },
]
