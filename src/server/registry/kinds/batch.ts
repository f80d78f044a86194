import type { Row } from './row.ts'

export const batchKinds: readonly Row[] = [
  {
    group: 'batch',
    kind: 'Job',
    plural: 'jobs',
    categories: ['all'],
    schema: 'io.k8s.api.batch.v1.Job',
    hasStatus: true,
    hasGeneration: true,
  },
  {
    group: 'batch',
    kind: 'CronJob',
    plural: 'cronjobs',
    shortNames: ['cj'],
    categories: ['all'],
    schema: 'io.k8s.api.batch.v1.CronJob',
    hasStatus: true,
    hasGeneration: true,
  },
]
