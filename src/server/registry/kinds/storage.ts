import type { Row } from './row.ts'

export const storageKinds: readonly Row[] = [
  {
    group: 'storage.k8s.io',
    kind: 'StorageClass',
    plural: 'storageclasses',
    shortNames: ['sc'],
    cluster: true,
    schema: 'io.k8s.api.storage.v1.StorageClass',
  },
]
