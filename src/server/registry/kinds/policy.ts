import type { Row } from './row.ts'

export const policyKinds: readonly Row[] = [
  {
    group: 'policy',
    kind: 'PodDisruptionBudget',
    plural: 'poddisruptionbudgets',
    shortNames: ['pdb'],
    schema: 'io.k8s.api.policy.v1.PodDisruptionBudget',
    hasStatus: true,
    hasGeneration: true,
  },
]
