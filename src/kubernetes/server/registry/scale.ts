import {
  formatLabelSelector,
  getOwn,
  invalidValue,
  isJsonObject,
  type KubeObject,
  type LabelSelectorObject,
  labelSelectorFromObject,
  type StatusCause,
} from '../../object/index.ts'
import type { CrdScale } from './crd/crd.ts'
import { allVerbs, type Kind } from './kind.ts'
import { ageColumn, nameColumn, type PrinterColumn } from './printer-columns.ts'
import { goForm, typeSchema } from './schemas/index.ts'

/** The fields of a kind that its scale subresource reads and writes. */
export type ScaleFields = {
  /** Path of the desired number, such as `['spec', 'replicas']`. */
  readonly specReplicas: readonly string[]
  /** Path of the actual number. */
  readonly statusReplicas: readonly string[]
  /** The selector of the Pods in kubectl's notation; empty if there is none. */
  selector(object: KubeObject): string
}

/** For kinds that Kubernetes itself scales: `spec.replicas`, `status.replicas` and the label selector in `spec.selector`. */
export const builtInScale: ScaleFields = {
  specReplicas: ['spec', 'replicas'],
  statusReplicas: ['status', 'replicas'],
  selector: ({ spec }) => formatSortedLabelSelector((spec as { selector?: LabelSelectorObject } | undefined)?.selector),
}

/** As {@link builtInScale} for ReplicationController, whose selector is a plain map. */
export const plainSelectorScale: ScaleFields = {
  ...builtInScale,
  selector: ({ spec }) =>
    formatSortedLabelSelector({ matchLabels: (spec as { selector?: Record<string, string> } | undefined)?.selector ?? {} }),
}

/** The scale fields that a CustomResourceDefinition declares; each path has a leading dot. */
export function customScale(paths: CrdScale): ScaleFields {
  const selectorPath = paths.labelSelectorPath ? fieldsOf(paths.labelSelectorPath) : undefined
  return {
    specReplicas: fieldsOf(paths.specReplicasPath),
    statusReplicas: fieldsOf(paths.statusReplicasPath),
    selector: object => {
      const selector = selectorPath && valueAt(object, selectorPath)
      return typeof selector === 'string' ? selector : ''
    },
  }
}

const fieldsOf = (path: string) => path.split('.').slice(1)

const maxReplicas = 2 ** 31 - 1

/** Errors of the fields that a custom kind declares for its scale. */
export function customScaleErrors(
  { specReplicasPath, statusReplicasPath, labelSelectorPath }: CrdScale,
  object: KubeObject,
): StatusCause[] {
  const causes: StatusCause[] = []
  for (const path of [specReplicasPath, statusReplicasPath]) {
    const count = valueAt(object, fieldsOf(path))
    if (count === undefined) continue
    if (typeof count !== 'number' || !Number.isInteger(count)) causes.push(invalidValue(path, count, 'should be an integer'))
    else if (count < 0) causes.push(invalidValue(path, count, 'should be a non-negative integer'))
    else if (count > maxReplicas) causes.push(invalidValue(path, count, `should be less than or equal to ${maxReplicas}`))
  }
  const selector = labelSelectorPath ? valueAt(object, fieldsOf(labelSelectorPath)) : undefined
  if (selector !== undefined && typeof selector !== 'string')
    causes.push(invalidValue(labelSelectorPath ?? '', selector, 'should be a string'))
  return causes
}

/** The value at a path of fields; undefined if a part is missing. */
export function valueAt(object: unknown, path: readonly string[]): unknown {
  let value = object
  for (const name of path) {
    if (!isJsonObject(value)) return undefined
    value = getOwn(value, name)
  }
  return value
}

/** A LabelSelector in kubectl's notation with sorted keys and values; empty for an invalid one. */
export function formatSortedLabelSelector(selector: LabelSelectorObject | undefined): string {
  if (!selector) return ''
  try {
    const { requirements } = labelSelectorFromObject(selector)
    requirements.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    for (const { values } of requirements) values.sort()
    return formatLabelSelector({ requirements })
  } catch {
    return ''
  }
}

const metadataText =
  'Standard object metadata; More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata.'
const specReplicasText = 'replicas is the desired number of instances for the scaled object.'
const statusReplicasText = 'replicas is the actual number of observed instances of the scaled object.'

const desiredColumn: PrinterColumn = {
  name: 'Desired',
  type: 'integer',
  description: specReplicasText,
  priority: 0,
  read: object => valueAt(object, ['spec', 'replicas']) ?? 0,
}
const availableColumn: PrinterColumn = {
  name: 'Available',
  type: 'integer',
  description: statusReplicasText,
  priority: 0,
  read: object => valueAt(object, ['status', 'replicas']) ?? 0,
}

/** `autoscaling/v1` Scale: a view of an object whose kind has {@link ScaleFields}; never stored. */
const scaleKind: Kind = {
  group: 'autoscaling',
  version: 'v1',
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  listKind: 'ScaleList',
  plural: 'scales',
  singular: 'scale',
  shortNames: [],
  categories: [],
  namespaced: true,
  verbs: allVerbs,
  storageName: '',
  description: 'Scale represents a scaling request for a resource.',
  schema: {
    type: 'object',
    description: 'Scale represents a scaling request for a resource.',
    properties: {
      apiVersion: { type: 'string', description: 'APIVersion defines the versioned schema of this representation of an object.' },
      kind: { type: 'string', description: 'Kind is a string value representing the REST resource this object represents.' },
      metadata: { type: 'object', description: metadataText },
      spec: {
        type: 'object',
        description: 'ScaleSpec describes the attributes of a scale subresource.',
        properties: { replicas: { type: 'integer', format: 'int32', description: specReplicasText } },
      },
      status: {
        type: 'object',
        description: 'ScaleStatus represents the current status of a scale subresource.',
        required: ['replicas'],
        properties: {
          replicas: { type: 'integer', format: 'int32', description: statusReplicasText },
          selector: {
            type: 'string',
            description:
              'selector is the label query over pods that should match the replicas count, as text in the format of the query parameter labelSelector.',
          },
        },
      },
    },
  },
  strategy: {
    default: object => goForm(typeSchema('io.k8s.api.autoscaling.v1.Scale'), object, { kind: 'Scale', version: 'v1' }) as KubeObject,
  },
  nameRule: 'dns1123Subdomain',
  hasStatus: false,
  hasGeneration: false,
  columns: [{ ...nameColumn, format: '' }, desiredColumn, availableColumn, ageColumn],
  selectableFields: [],
  isCustom: false,
}

const customScaleKind: Kind = {
  ...scaleKind,
  columns: [
    nameColumn,
    { ...desiredColumn, description: 'Number of desired replicas' },
    { ...availableColumn, description: 'Number of actual replicas' },
    { ...ageColumn, type: 'date' },
  ],
  isCustom: true,
}

/** The Scale kind for a kind. The Scale of a custom kind does not support strategic merge patch. */
export function scaleKindFor(kind: Kind): Kind {
  return kind.isCustom ? customScaleKind : scaleKind
}
