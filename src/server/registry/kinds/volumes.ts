import type { Row } from './row.ts'

export const volumeKinds: readonly Row[] = [
  {
    kind: 'PersistentVolume',
    plural: 'persistentvolumes',
    shortNames: ['pv'],
    cluster: true,
    schema: 'io.k8s.api.core.v1.PersistentVolume',
    hasStatus: true,
  },
  {
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    shortNames: ['pvc'],
    schema: 'io.k8s.api.core.v1.PersistentVolumeClaim',
    hasStatus: true,
  },
]
