import { plainSelectorScale } from '../scale.ts'
import type { Row } from './row.ts'

export const podKinds: readonly Row[] = [
  {
    kind: 'Pod',
    plural: 'pods',
    shortNames: ['po'],
    categories: ['all'],
    schema: 'io.k8s.api.core.v1.Pod',
    hasStatus: true,
    hasGeneration: true,
  },
  {
    kind: 'PodTemplate',
    plural: 'podtemplates',
    schema: 'io.k8s.api.core.v1.PodTemplate',
    hasGeneration: true,
  },
  {
    kind: 'ReplicationController',
    plural: 'replicationcontrollers',
    shortNames: ['rc'],
    categories: ['all'],
    schema: 'io.k8s.api.core.v1.ReplicationController',
    scale: plainSelectorScale,
    hasStatus: true,
    hasGeneration: true,
  },
]
