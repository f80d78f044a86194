import { equalJson, invalidValue, type KubeObject, type StatusCause } from '../../../object/index.ts'
import type { PrinterColumn } from '../printer-columns.ts'
import { ageColumn, column, creationTimestampText, nameColumn } from '../printer-columns.ts'
import { fieldsOf, itemsOf, textsOf } from '../type-rules/index.ts'
import { textAt, valueAtPath } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const group = 'storage.k8s.io'

/** What kube-apiserver prints for kinds without columns of their own. */
const createdColumn: PrinterColumn = {
  ...column('Created At', creationTimestampText, ({ metadata }) => metadata.creationTimestamp),
  type: 'date',
}

/** Kinds of the Container Storage Interface. A kubelet needs them to start, and so does a scheduler. */
export const csiKinds: readonly KindDeclaration[] = [
  {
    group,
    kind: 'CSIDriver',
    plural: 'csidrivers',
    cluster: true,
    typeName: 'io.k8s.api.storage.v1.CSIDriver',
    returnDeletedObject: true,
    // It is not set on creation.
    prepareForWrite: (driver, oldDriver) => {
      if (oldDriver && !equalJson(driver.spec, oldDriver.spec)) driver.metadata.generation = (oldDriver.metadata.generation ?? 0) + 1
    },
    warnings: driverWarnings,
    columns: [
      nameColumn,
      flag('AttachRequired', 'Whether a volume must be attached to the node before it is mounted.', 'spec.attachRequired'),
      flag('PodInfoOnMount', 'Whether the driver gets the name of the Pod when it mounts a volume.', 'spec.podInfoOnMount'),
      flag('StorageCapacity', 'Whether the scheduler considers the capacity that the driver reports.', 'spec.storageCapacity'),
      column(
        'TokenRequests',
        'The audiences of the service account tokens that the driver gets.',
        driver => audiencesOf(driver) || '<unset>',
      ),
      flag('RequiresRepublish', 'Whether the kubelet calls NodePublishVolume periodically.', 'spec.requiresRepublish'),
      column(
        'Modes',
        'The kinds of volumes that the driver supports.',
        ({ spec }) => textsOf(fieldsOf(spec).volumeLifecycleModes).join(',') || '<none>',
      ),
      ageColumn,
    ],
    validate: driverErrors,
  },
  {
    group,
    kind: 'CSINode',
    plural: 'csinodes',
    cluster: true,
    typeName: 'io.k8s.api.storage.v1.CSINode',
    returnDeletedObject: true,
    columns: [
      nameColumn,
      {
        ...column(
          'Drivers',
          'Drivers indicates the number of CSI drivers registered on the node',
          ({ spec }) => itemsOf(fieldsOf(spec).drivers).length,
        ),
        type: 'integer',
      },
      ageColumn,
    ],
    validate: (node, oldNode) => (oldNode ? changedDriverErrors(node, oldNode) : []),
  },
  {
    group,
    kind: 'CSIStorageCapacity',
    plural: 'csistoragecapacities',
    typeName: 'io.k8s.api.storage.v1.CSIStorageCapacity',
    columns: [nameColumn, createdColumn],
    validate: (capacity, oldCapacity) => immutable(['nodeTopology', 'storageClassName'], capacity, oldCapacity),
  },
  {
    group,
    kind: 'VolumeAttachment',
    plural: 'volumeattachments',
    cluster: true,
    typeName: 'io.k8s.api.storage.v1.VolumeAttachment',
    hasStatus: true,
    returnDeletedObject: true,
    columns: [
      nameColumn,
      {
        ...column(
          'Attacher',
          'attacher indicates the name of the volume driver that MUST handle this request. This is the name returned by GetPluginName().',
          attachment => textAt(attachment, 'spec.attacher', ''),
        ),
        format: 'name',
      },
      column('PV', 'persistentVolumeName represents the name of the persistent volume to attach.', attachment =>
        textAt(attachment, 'spec.source.persistentVolumeName', ''),
      ),
      column('Node', 'nodeName represents the node that the volume should be attached to.', attachment =>
        textAt(attachment, 'spec.nodeName', ''),
      ),
      flag(
        'Attached',
        'attached indicates the volume is successfully attached. This field must only be set by the entity completing the attach operation, i.e. the external-attacher.',
        'status.attached',
      ),
      ageColumn,
    ],
    validate: (attachment, old) => immutable(['spec'], attachment, old),
  },
]

function flag(name: string, description: string, path: string): PrinterColumn {
  return { ...column(name, description, object => valueAtPath(object, path) === true), type: 'boolean' }
}

function audiencesOf({ spec }: KubeObject): string {
  return itemsOf(fieldsOf(spec).tokenRequests)
    .map(({ audience }) => String(audience ?? ''))
    .join(',')
}

function immutable(fields: readonly string[], object: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  return fields
    .filter(field => oldObject && !equalJson(object[field], oldObject[field]))
    .map(field => invalidValue(field, object[field] ?? null, 'field is immutable'))
}

/** Kubernetes reports `attachRequired` with another name. */
const immutableDriverFields = { attachRequired: 'attachedRequired', volumeLifecycleModes: 'volumeLifecycleModes' }

function driverErrors(driver: KubeObject, oldDriver: KubeObject | undefined): StatusCause[] {
  if (!oldDriver) return []
  const [spec, oldSpec] = [fieldsOf(driver.spec), fieldsOf(oldDriver.spec)]
  return Object.entries(immutableDriverFields)
    .filter(([field]) => !equalJson(spec[field], oldSpec[field]))
    .map(([field, shown]) => invalidValue(`spec.${shown}`, spec[field] ?? null, 'field is immutable'))
}

function driverWarnings({ spec }: KubeObject, oldDriver: KubeObject | undefined): string[] {
  const { tokenRequests, serviceAccountTokenInSecrets } = fieldsOf(spec)
  if (oldDriver || itemsOf(tokenRequests).length === 0 || serviceAccountTokenInSecrets !== undefined) return []
  const why = 'if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes'
  return [`spec.serviceAccountTokenInSecrets is unset; ${why}`]
}

/** A driver of a node may be added and removed, but not changed. */
function changedDriverErrors({ spec }: KubeObject, oldNode: KubeObject): StatusCause[] {
  const before = new Map(itemsOf(fieldsOf(oldNode.spec).drivers).map(driver => [driver.name, driver]))
  return itemsOf(fieldsOf(spec).drivers).flatMap(driver => {
    const { allocatable: _, ...rest } = driver
    const { allocatable: __, ...oldRest } = before.get(driver.name) ?? driver
    return equalJson(rest, oldRest) ? [] : [invalidValue('spec.drivers', driver, 'field is immutable')]
  })
}
