import type { Row } from './row.ts'

export const volumeKinds: readonly Row[] = [
  {
    kind: 'PersistentVolume',
    plural: 'persistentvolumes',
    answersDeleted: true,
    shortNames: ['pv'],
    cluster: true,
    schema: 'io.k8s.api.core.v1.PersistentVolume',
    hasStatus: true,
  },
  {
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    answersDeleted: true,
    shortNames: ['pvc'],
    schema: 'io.k8s.api.core.v1.PersistentVolumeClaim',
    hasStatus: true,
  },
]
