import { equalJson, invalidValue } from '../../../object/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { storageClassWarnings } from '../warnings/index.ts'
import { textAt, valueAtPath } from './column-values.ts'
import { csiKinds } from './csi.ts'
import type { KindDeclaration } from './kind-declaration.ts'

/** Immutable fields of a StorageClass: volumes were provisioned with them. */
const immutableFields = ['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode']
/** Annotations that mark the default StorageClass, for claims without one. */
export const defaultClassAnnotations = ['storageclass.kubernetes.io/is-default-class', 'storageclass.beta.kubernetes.io/is-default-class']

export const storageKinds: readonly KindDeclaration[] = [
  {
    group: 'storage.k8s.io',
    kind: 'StorageClass',
    plural: 'storageclasses',
    shortNames: ['sc'],
    cluster: true,
    typeName: 'io.k8s.api.storage.v1.StorageClass',
    returnDeletedObject: true,
    columns: [
      {
        ...nameColumn,
        read: ({ metadata: { name, annotations } }) =>
          defaultClassAnnotations.some(key => annotations?.[key] === 'true') ? `${name} (default)` : name,
      },
      column('Provisioner', 'provisioner indicates the type of the provisioner.', object => textAt(object, 'provisioner', '')),
      column(
        'ReclaimPolicy',
        'reclaimPolicy controls the reclaimPolicy for dynamically provisioned PersistentVolumes of this storage class. Defaults to Delete.',
        object => textAt(object, 'reclaimPolicy', 'Delete'),
      ),
      column(
        'VolumeBindingMode',
        'volumeBindingMode indicates how PersistentVolumeClaims should be provisioned and bound.  When unset, VolumeBindingImmediate is used. This field is only honored by servers that enable the VolumeScheduling feature.',
        object => textAt(object, 'volumeBindingMode', 'Immediate'),
      ),
      column(
        'AllowVolumeExpansion',
        'allowVolumeExpansion shows whether the storage class allow volume expand.',
        object => valueAtPath(object, 'allowVolumeExpansion') === true,
      ),
      ageColumn,
    ],
    warnings: storageClassWarnings,
    validate: (object, oldObject) =>
      immutableFields
        .filter(field => oldObject && !equalJson(object[field], oldObject[field]))
        .map(field => invalidValue(field, object[field] ?? null, 'field is immutable')),
  },
  ...csiKinds,
]
