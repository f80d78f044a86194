import {
  compareQuantities,
  equalJson,
  forbiddenField,
  invalidValue,
  type KubeObject,
  parseQuantity,
  requiredValue,
  type StatusCause,
  unsupportedValue,
} from '../../../object/index.ts'
import { defaultClass, validateClaimLimits } from '../admission/index.ts'
import { ageColumn, column, nameColumn } from '../printer-columns.ts'
import { type Fields, fieldsOf, textOf, textsOf } from '../type-rules/index.ts'
import { claimWarnings, volumeWarnings } from '../warnings/index.ts'
import { textAt } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'
import { defaultClassAnnotations } from './storage.ts'

const classAnnotation = 'volume.beta.kubernetes.io/storage-class'

export const volumeKinds: readonly KindDeclaration[] = [
  {
    kind: 'PersistentVolume',
    plural: 'persistentvolumes',
    shortNames: ['pv'],
    cluster: true,
    typeName: 'io.k8s.api.core.v1.PersistentVolume',
    hasStatus: true,
    returnDeletedObject: true,
    columns: [
      nameColumn,
      column(
        'Capacity',
        "capacity is the description of the persistent volume's resources and capacity. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#capacity",
        volume => storageOf(fieldsOf(volume.spec).capacity) || '0',
      ),
      column(
        'Access Modes',
        'accessModes contains all ways the volume can be mounted. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes',
        ({ spec }) => formatModes(fieldsOf(spec).accessModes),
      ),
      column(
        'Reclaim Policy',
        'persistentVolumeReclaimPolicy defines what happens to a persistent volume when released from its claim. Valid options are Retain (default for manually created PersistentVolumes), Delete (default for dynamically provisioned PersistentVolumes), and Recycle (deprecated). Recycle must be supported by the volume plugin underlying this PersistentVolume. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#reclaiming',
        volume => textAt(volume, 'spec.persistentVolumeReclaimPolicy', ''),
      ),
      column(
        'Status',
        'phase indicates if a volume is available, bound to a claim, or released by a claim. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#phase',
        phaseOf,
      ),
      column(
        'Claim',
        'claimRef is part of a bi-directional binding between PersistentVolume and PersistentVolumeClaim. Expected to be non-nil when bound. claim.VolumeName is the authoritative bind between PV and PVC. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#binding',
        ({ spec }) => {
          const { namespace, name } = fieldsOf(fieldsOf(spec).claimRef)
          return name === undefined ? '' : `${textOf(namespace)}/${name}`
        },
      ),
      column('StorageClass', 'StorageClass of the pv', volume => classOf(volume)),
      column('VolumeAttributesClass', 'VolumeAttributesClass of the pv', volume =>
        textAt(volume, 'spec.volumeAttributesClassName', '<unset>'),
      ),
      column(
        'Reason',
        'reason is a brief CamelCase string that describes any failure and is meant for machine parsing and tidy display in the CLI.',
        volume => textAt(volume, 'status.reason', ''),
      ),
      ageColumn,
      column(
        'VolumeMode',
        'volumeMode defines if a volume is intended to be used with a formatted filesystem or to remain in raw block state. Value of Filesystem is implied when not included in spec.',
        volume => textAt(volume, 'spec.volumeMode', '<unset>'),
        1,
      ),
    ],
    prepareForCreate: volume => {
      volume.status = { phase: 'Pending', lastPhaseTransitionTime: volume.metadata.creationTimestamp }
    },
    validate: validateVolume,
    warnings: volumeWarnings,
    validateStatusUpdate: () => [],
  },
  {
    kind: 'PersistentVolumeClaim',
    plural: 'persistentvolumeclaims',
    shortNames: ['pvc'],
    typeName: 'io.k8s.api.core.v1.PersistentVolumeClaim',
    hasStatus: true,
    returnDeletedObject: true,
    columns: [
      nameColumn,
      column('Status', 'phase represents the current phase of PersistentVolumeClaim.', phaseOf),
      column('Volume', 'volumeName is the binding reference to the PersistentVolume backing this claim.', claim =>
        textAt(claim, 'spec.volumeName', ''),
      ),
      column('Capacity', 'capacity represents the actual resources of the underlying volume.', claim =>
        isBound(claim) ? storageOf(fieldsOf(claim.status).capacity) || '0' : '',
      ),
      column(
        'Access Modes',
        'accessModes contains the actual access modes the volume backing the PVC has. More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes#access-modes-1',
        claim => (isBound(claim) ? formatModes(fieldsOf(claim.status).accessModes) : ''),
      ),
      column('StorageClass', 'StorageClass of the pvc', claim => classOf(claim)),
      column('VolumeAttributesClass', 'VolumeAttributesClass of the pvc', claim =>
        textAt(claim, 'spec.volumeAttributesClassName', '<unset>'),
      ),
      ageColumn,
      column(
        'VolumeMode',
        'volumeMode defines what type of volume is required by the claim. Value of Filesystem is implied when not included in claim spec.',
        claim => textAt(claim, 'spec.volumeMode', '<unset>'),
        1,
      ),
    ],
    prepareForCreate: (claim, stored) => {
      const spec = fieldsOf(claim.spec)
      if (spec.storageClassName !== undefined || claim.metadata.annotations?.[classAnnotation] !== undefined) return
      const storageClassName = defaultClass(stored.all('storageclasses.storage.k8s.io'), defaultClassAnnotations)
      if (storageClassName !== undefined) claim.spec = { ...spec, storageClassName }
    },
    validateAdmission: (claim, _, stored) => validateClaimLimits(claim, stored),
    validate: validateClaim,
    warnings: claimWarnings,
    validateStatusUpdate: () => [],
  },
]

const storageOf = (amounts: unknown): string => textOf(fieldsOf(amounts).storage)
const isBound = ({ spec }: KubeObject) => textOf(fieldsOf(spec).volumeName) !== ''

function phaseOf({ status, metadata }: KubeObject): string {
  return metadata.deletionTimestamp ? 'Terminating' : textOf(fieldsOf(status).phase)
}

function classOf({ spec, metadata }: KubeObject): string {
  return metadata.annotations?.[classAnnotation] ?? textOf(fieldsOf(spec).storageClassName)
}

const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
}

/** Distinct access modes as `RWO,RWX`, in Kubernetes' order. */
function formatModes(list: unknown): string {
  const provided = textsOf(list)
  return Object.keys(modes)
    .filter(mode => provided.includes(mode))
    .map(mode => modes[mode])
    .join(',')
}

/** The fields of a PersistentVolume's spec that are not a volume source. */
const volumeFields = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
])

function sourceOf(spec: Fields): Fields {
  return Object.fromEntries(Object.entries(spec).filter(([field]) => !volumeFields.has(field)))
}

function validateVolume({ spec }: KubeObject, oldVolume: KubeObject | undefined): StatusCause[] {
  const fields = fieldsOf(spec)
  const causes: StatusCause[] = []
  const { accessModes, capacity } = fields
  if (textsOf(accessModes).length === 0) causes.push(requiredValue('spec.accessModes'))
  if (Object.keys(fieldsOf(capacity)).length === 0) causes.push(requiredValue('spec.capacity'))
  if (Object.keys(fieldsOf(capacity)).length !== 1 || storageOf(capacity) === '') {
    causes.push(unsupportedValue('spec.capacity', capacity === undefined ? null : goMap(fieldsOf(capacity)), ['storage']))
  }
  if (storageOf(capacity) !== '') causes.push(...positive('spec.capacity[storage]', storageOf(capacity)))
  const [source, ...otherSources] = Object.keys(sourceOf(fields)).sort()
  if (source === undefined) causes.push(requiredValue('spec', 'must specify a volume type'))
  for (const field of otherSources) causes.push(forbiddenField(`spec.${field}`, 'may not specify more than 1 volume type'))
  if (!oldVolume) return causes
  const oldFields = fieldsOf(oldVolume.spec)
  if (!equalJson(sourceOf(oldFields), sourceOf(fields))) {
    // Kubernetes adds what differs; it may hold secrets.
    causes.push(forbiddenField('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'))
  }
  for (const field of ['volumeMode', 'nodeAffinity']) {
    if (oldFields[field] !== undefined && !equalJson(oldFields[field], fields[field]))
      causes.push(invalidValue(field, fields[field] ?? null, 'field is immutable'))
  }
  return causes
}

// A map as Go prints it.
function goMap(map: Fields): Fields {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function positive(path: string, amount: string): StatusCause[] {
  return parseQuantity(amount).nanos > 0n ? [] : [invalidValue(path, amount, 'must be greater than zero')]
}

function validateClaim({ spec, status }: KubeObject, oldClaim: KubeObject | undefined): StatusCause[] {
  if (!oldClaim) return []
  const [fields, oldFields] = [fieldsOf(spec), fieldsOf(oldClaim.spec)]
  const causes: StatusCause[] = []
  const comparable: Fields = { ...fields }
  if (oldFields.volumeName === undefined) delete comparable.volumeName
  if (fieldsOf(status).phase === 'Bound') {
    comparable.resources = withStorage(fields.resources, storageOf(fieldsOf(oldFields.resources).requests))
    comparable.volumeAttributesClassName = oldFields.volumeAttributesClassName
    if (comparable.volumeAttributesClassName === undefined) delete comparable.volumeAttributesClassName
  }
  if (!equalJson(comparable, oldFields)) {
    // Kubernetes adds what differs.
    const reason = 'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims'
    causes.push(forbiddenField('spec', reason))
  }
  const [storage, oldStorage] = [storageOf(fieldsOf(fields.resources).requests), storageOf(fieldsOf(oldFields.resources).requests)]
  const capacity = storageOf(fieldsOf(oldClaim.status).capacity)
  const isDecreased = storage !== '' && oldStorage !== '' && compareQuantities(parseQuantity(storage), parseQuantity(oldStorage)) < 0
  if (isDecreased && compareQuantities(parseQuantity(storage), parseQuantity(capacity || '0')) <= 0) {
    causes.push(forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity'))
  }
  if (fields.volumeMode !== oldFields.volumeMode) causes.push(invalidValue('volumeMode', fields.volumeMode ?? null, 'field is immutable'))
  return causes
}

function withStorage(resources: unknown, storage: string): Fields {
  const { requests } = fieldsOf(resources)
  return { ...fieldsOf(resources), requests: { ...fieldsOf(requests), storage } }
}
