import {
  applyDefaults,
  forbiddenField,
  invalidValue,
  type KubeObject,
  type NameRule,
  requiredValue,
  type StatusCause,
  type StructuralSchema,
  tooLong,
} from '../../kube/index.ts'
import { ageColumn, column, creationTimestampText, nameColumn } from './columns.ts'
import {
  coreEventSchema,
  eventColumns,
  eventFields,
  eventFromCore,
  eventsEventSchema,
  eventsGroupFields,
  eventToCore,
} from './core-events.ts'
import { checkCrd, crdFinalizer, crdSchema, prepareCrd } from './crd-object.ts'
import { allVerbs, type Column, type Kind, type SelectableField, storageNameOf, type Verb } from './kind.ts'

type Row = {
  group?: string
  version?: string
  kind: string
  plural: string
  shortNames?: string[]
  categories?: string[]
  cluster?: boolean
  description: string
  fields: Record<string, StructuralSchema>
  required?: string[]
  nameRule?: NameRule
  verbs?: readonly Verb[]
  hasStatus?: boolean
  hasGeneration?: boolean
  blank?: Record<string, unknown>
  columns?: readonly Column[]
  selectableFields?: readonly SelectableField[]
  mergeKeys?: Record<string, string>
  storageName?: string
  prepare?: Kind['prepare']
  check?: Kind['check']
  refuseDelete?: Kind['refuseDelete']
  fromStorage?: Kind['fromStorage']
  toStorage?: Kind['toStorage']
}

const text = (description: string): StructuralSchema => ({ type: 'string', description })
const textMap = (description: string, format?: string): StructuralSchema => ({
  type: 'object',
  description,
  additionalProperties: format ? { type: 'string', format } : { type: 'string' },
})
const localReference: StructuralSchema = {
  type: 'object',
  description: 'LocalObjectReference names an object in the same namespace.',
  'x-kubernetes-map-type': 'atomic',
  properties: { name: text('Name of the referent.') },
}

/** Every built-in kind: one row each. What a row does not say is the plain case. */
const rows: Row[] = [
  {
    kind: 'Namespace',
    plural: 'namespaces',
    shortNames: ['ns'],
    cluster: true,
    description: 'Namespace provides a scope for Names. Use of multiple namespaces is optional.',
    nameRule: 'dns1123Label',
    blank: { spec: { finalizers: ['kubernetes'] }, status: { phase: 'Active' } },
    // One slip would end everything.
    verbs: allVerbs.filter(verb => verb !== 'deletecollection'),
    hasStatus: true,
    fields: {
      spec: {
        type: 'object',
        default: {},
        description: 'Spec defines the behavior of the Namespace.',
        properties: {
          finalizers: {
            type: 'array',
            description: 'Finalizers is an opaque list of values that must be empty to permanently remove object from storage.',
            items: { type: 'string' },
            'x-kubernetes-list-type': 'atomic',
          },
        },
      },
      status: {
        type: 'object',
        default: {},
        description: 'Status describes the current status of a Namespace.',
        properties: {
          phase: text('Phase is the current lifecycle phase of the namespace: Active or Terminating.'),
          conditions: {
            type: 'array',
            description: "Represents the latest available observations of a namespace's current state.",
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['type'],
            items: {
              type: 'object',
              required: ['type', 'status'],
              properties: {
                type: text('Type of namespace controller condition.'),
                status: text('Status of the condition, one of True, False, Unknown.'),
                reason: text('Why, for machines.'),
                message: text('Why, for people.'),
                lastTransitionTime: { type: 'string', format: 'date-time', description: 'When status last changed.' },
              },
            },
          },
        },
      },
    },
    columns: [nameColumn, column('Status', 'The status of the namespace', namespacePhase), ageColumn],
    selectableFields: [{ field: 'status.phase', read: namespacePhase }],
    prepare: prepareNamespace,
    check: ({ status, metadata }) => {
      const isActive = ((status ?? {}) as { phase?: string }).phase !== 'Terminating'
      if (isActive || metadata.deletionTimestamp) return []
      return [invalidValue('status.Phase', 'Terminating', "may only be 'Active' if `deletionTimestamp` is empty")]
    },
    refuseDelete: ({ metadata: { name } }) =>
      name === 'default' || name === 'kube-system' || name === 'kube-public' ? 'this namespace may not be deleted' : undefined,
  },
  {
    kind: 'ConfigMap',
    plural: 'configmaps',
    shortNames: ['cm'],
    description: 'ConfigMap holds configuration data for pods to consume.',
    fields: {
      binaryData: textMap('BinaryData contains the binary data, base64 encoded.', 'byte'),
      data: textMap('Data contains the configuration data. Each key must consist of alphanumeric characters, -, _ or . only.'),
      immutable: {
        type: 'boolean',
        description: 'Immutable, if set to true, ensures that data stored in the ConfigMap cannot be updated.',
      },
    },
    columns: [
      nameColumn,
      column(
        'Data',
        "Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.",
        object => countKeys(object.data) + countKeys(object.binaryData),
      ),
      ageColumn,
    ],
    check: (object, before) => [
      ...dataErrors(object, ['data', 'binaryData']),
      ...Object.keys((object.data ?? {}) as object)
        .filter(key => Object.hasOwn((object.binaryData ?? {}) as object, key))
        .map(key => invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData')),
      ...immutableErrors(object, before, ['data', 'binaryData']),
    ],
  },
  {
    kind: 'Secret',
    plural: 'secrets',
    description: 'Secret holds secret data of a certain type. The total bytes of the values in the Data field must be less than 1 MiB.',
    fields: {
      data: textMap('Data contains the secret data, base64 encoded.', 'byte'),
      immutable: { type: 'boolean', description: 'Immutable, if set to true, ensures that data stored in the Secret cannot be updated.' },
      stringData: textMap('StringData takes secret data as plain text; it is write-only and merged into data.'),
      type: text('Used to facilitate programmatic handling of secret data.'),
    },
    columns: [
      nameColumn,
      column('Type', 'What the data is for.', object => object.type),
      column('Data', 'How many keys it has.', object => countKeys(object.data)),
      ageColumn,
    ],
    selectableFields: [{ field: 'type', read: object => String(object.type ?? '') }],
    prepare: prepareSecret,
    check: (object, before) => {
      const causes = [...dataErrors(object, ['data']), ...secretTypeErrors(object), ...immutableErrors(object, before, ['data'])]
      if (before && before.type !== object.type) causes.push(invalidValue('type', object.type, 'field is immutable'))
      return causes
    },
  },
  {
    kind: 'ServiceAccount',
    plural: 'serviceaccounts',
    shortNames: ['sa'],
    description: 'ServiceAccount binds together a name, a principal that can be authenticated and authorized, and a set of secrets.',
    fields: {
      automountServiceAccountToken: {
        type: 'boolean',
        description: 'Whether pods running as this service account get an API token mounted.',
      },
      imagePullSecrets: {
        type: 'array',
        description: 'References to secrets in the same namespace to use for pulling any images.',
        items: localReference,
        'x-kubernetes-list-type': 'atomic',
      },
      secrets: {
        type: 'array',
        description: 'Secrets in the same namespace that pods running using this ServiceAccount are allowed to use.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, properties: { name: text('Name of the secret.') } },
      },
    },
    mergeKeys: { secrets: 'name', imagePullSecrets: 'name' },
    columns: [
      nameColumn,
      column('Secrets', 'How many secrets it names.', object => (Array.isArray(object.secrets) ? object.secrets.length : 0)),
      ageColumn,
    ],
  },
  {
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    description: 'Event is a report of an event somewhere in the cluster.',
    fields: coreEventSchema,
    columns: eventColumns,
    selectableFields: eventFields,
    check: ({ involvedObject, metadata }) => {
      const about = (involvedObject as { namespace?: string } | undefined)?.namespace ?? ''
      const isRight = about === metadata.namespace || (about === '' && metadata.namespace === 'default')
      return isRight ? [] : [invalidValue('involvedObject.namespace', about, 'does not match event.namespace')]
    },
  },
  {
    group: 'events.k8s.io',
    kind: 'Event',
    plural: 'events',
    shortNames: ['ev'],
    description: 'Event is a report of an event somewhere in the cluster. It generally denotes some state change in the system.',
    fields: eventsEventSchema,
    columns: eventColumns,
    selectableFields: eventsGroupFields,
    storageName: 'events',
    fromStorage: eventFromCore,
    toStorage: eventToCore,
  },
  {
    group: 'coordination.k8s.io',
    kind: 'Lease',
    plural: 'leases',
    description: 'Lease defines a lease concept.',
    fields: {
      spec: {
        type: 'object',
        default: {},
        description: 'Spec contains the specification of the Lease.',
        properties: {
          acquireTime: { type: 'string', format: 'date-time', description: 'When the current lease was acquired.', nullable: true },
          holderIdentity: text('The identity of the holder of a current lease.'),
          leaseDurationSeconds: {
            type: 'integer',
            format: 'int32',
            description: 'How long candidates wait after renewTime, as they observed it, before they force acquire the lease.',
          },
          leaseTransitions: { type: 'integer', format: 'int32', description: 'The number of transitions of a lease between holders.' },
          preferredHolder: text('PreferredHolder signals to a lease holder that the lease has a more optimal holder.'),
          renewTime: {
            type: 'string',
            format: 'date-time',
            description: 'When the current holder last updated the lease.',
            nullable: true,
          },
          strategy: text('Strategy indicates the strategy for picking the leader for coordinated leader election.'),
        },
      },
    },
    columns: [
      nameColumn,
      column(
        'Holder',
        'holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.',
        object => (object.spec as { holderIdentity?: string } | undefined)?.holderIdentity ?? '',
      ),
      ageColumn,
    ],
    check: object => {
      const { leaseDurationSeconds, leaseTransitions } = (object.spec ?? {}) as Record<string, unknown>
      const causes: StatusCause[] = []
      if (typeof leaseDurationSeconds === 'number' && leaseDurationSeconds <= 0) {
        causes.push(invalidValue('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'))
      }
      if (typeof leaseTransitions === 'number' && leaseTransitions < 0) {
        causes.push(invalidValue('spec.leaseTransitions', leaseTransitions, 'must be greater than or equal to 0'))
      }
      return causes
    },
  },
  {
    group: 'apiextensions.k8s.io',
    kind: 'CustomResourceDefinition',
    plural: 'customresourcedefinitions',
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    cluster: true,
    description:
      'CustomResourceDefinition represents a resource that should be exposed on the API server. Its name must be <plural>.<group>.',
    fields: crdSchema,
    required: ['spec'],
    blank: { spec: { names: {} }, metadata: { finalizers: [crdFinalizer] } },
    hasStatus: true,
    hasGeneration: true,
    columns: [nameColumn, { ...column('Created At', creationTimestampText, object => object.metadata.creationTimestamp), type: 'date' }],
    prepare: prepareCrd,
    check: checkCrd,
  },
]

export function builtInKinds(): Kind[] {
  return rows.map(toKind)
}

function toKind(row: Row): Kind {
  const kind = compile(row)
  return { ...kind, blank: { ...(applyDefaults(kind.schema, {}) as object), ...row.blank } }
}

function compile(row: Row): Kind {
  const { group = '', version = 'v1', kind, plural } = row
  return {
    group,
    version,
    apiVersion: group ? `${group}/${version}` : version,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    shortNames: row.shortNames ?? [],
    categories: row.categories ?? [],
    namespaced: !row.cluster,
    verbs: row.verbs ?? allVerbs,
    storageName: row.storageName ?? storageNameOf(group, plural),
    schema: {
      type: 'object',
      description: row.description,
      ...(row.required && { required: row.required }),
      properties: {
        apiVersion: text('APIVersion defines the versioned schema of this representation of an object.'),
        kind: text('Kind is a string value representing the REST resource this object represents.'),
        // Checked field by field in rest/, which is faster and words its errors as Kubernetes does.
        metadata: { type: 'object' },
        ...row.fields,
      },
    },
    description: row.description,
    nameRule: row.nameRule ?? 'dns1123Subdomain',
    hasStatus: row.hasStatus ?? false,
    hasGeneration: row.hasGeneration ?? false,
    columns: row.columns ?? [nameColumn, ageColumn],
    selectableFields: row.selectableFields ?? [],
    isCustom: false,
    mergeKeys: { 'metadata.ownerReferences': 'uid', 'metadata.finalizers': '', ...row.mergeKeys },
    prepare: row.prepare,
    check: row.check,
    refuseDelete: row.refuseDelete,
    fromStorage: row.fromStorage,
    toStorage: row.toStorage,
  }
}

function namespacePhase(object: KubeObject): string {
  return (object.status as { phase?: string } | undefined)?.phase ?? 'Active'
}

function prepareNamespace(namespace: KubeObject, before: KubeObject | undefined): void {
  const { metadata } = namespace
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name }
  if (before) {
    // Changed only through the finalize subresource.
    namespace.spec = before.spec
    return
  }
  const spec = (namespace.spec ?? {}) as { finalizers?: string[] }
  namespace.spec = { ...spec, finalizers: [...new Set([...(spec.finalizers ?? []), 'kubernetes'])] }
  namespace.status = { phase: 'Active' }
}

function prepareSecret(secret: KubeObject): void {
  if (secret.type === undefined || secret.type === '') secret.type = 'Opaque'
  const { stringData } = secret
  if (stringData && typeof stringData === 'object') {
    const encoded = Object.entries(stringData).map(([key, value]) => [key, Buffer.from(String(value)).toString('base64')])
    secret.data = { ...(secret.data as object), ...Object.fromEntries(encoded) }
  }
  delete secret.stringData
}

function countKeys(value: unknown): number {
  return value && typeof value === 'object' ? Object.keys(value).length : 0
}

const maxDataBytes = 1024 * 1024
const keyPattern = /^[-._a-zA-Z0-9]+$/

function dataErrors(object: KubeObject, fields: string[]): StatusCause[] {
  const causes: StatusCause[] = []
  let bytes = 0
  for (const field of fields) {
    for (const [key, value] of Object.entries((object[field] ?? {}) as Record<string, string>)) {
      bytes += String(value).length
      if (key.length > 253) causes.push(invalidValue(`${field}[${key}]`, key, 'must be no more than 253 characters'))
      else if (key === '.' || key === '..') causes.push(invalidValue(`${field}[${key}]`, key, `must not be '${key}'`))
      else if (key.startsWith('..')) causes.push(invalidValue(`${field}[${key}]`, key, "must not start with '..'"))
      else if (!keyPattern.test(key)) {
        const why = `a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')`
        causes.push(invalidValue(`${field}[${key}]`, key, why))
      }
    }
  }
  if (bytes > maxDataBytes * 1.4) causes.push(tooLong('', maxDataBytes))
  return causes
}

const secretKeys: Record<string, readonly string[]> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
}

/** What Kubernetes' own types of secrets must hold. Values are never part of a message. */
function secretTypeErrors({ type, data, metadata }: KubeObject): StatusCause[] {
  const values = (data ?? {}) as Record<string, string>
  if (type === 'kubernetes.io/service-account-token') {
    const annotation = 'kubernetes.io/service-account.name'
    return metadata.annotations?.[annotation] ? [] : [requiredValue(`metadata.annotations[${annotation}]`)]
  }
  if (type === 'kubernetes.io/basic-auth') {
    if (Object.hasOwn(values, 'username') || Object.hasOwn(values, 'password')) return []
    return [requiredValue('data[username]'), requiredValue('data[password]')]
  }
  return (secretKeys[String(type)] ?? []).flatMap(key => {
    if (!Object.hasOwn(values, key)) return [requiredValue(`data[${key}]`)]
    if (!key.startsWith('.')) return []
    const why = whyNoJson(Buffer.from(String(values[key]), 'base64').toString())
    return why ? [invalidValue(`data[${key}]`, '<secret contents redacted>', why)] : []
  })
}

function whyNoJson(json: string): string | undefined {
  try {
    JSON.parse(json)
    return undefined
  } catch (error) {
    return /end of JSON input|property name|after/.test((error as Error).message) ? 'unexpected end of JSON input' : 'invalid JSON'
  }
}

function immutableErrors(object: KubeObject, before: KubeObject | undefined, fields: string[]): StatusCause[] {
  if (before?.immutable !== true) return []
  const causes: StatusCause[] = []
  if (object.immutable !== true) causes.push(forbiddenField('immutable', 'field is immutable when `immutable` is set'))
  for (const field of fields) {
    if (JSON.stringify(before[field] ?? {}) !== JSON.stringify(object[field] ?? {})) {
      causes.push(forbiddenField(field, 'field is immutable when `immutable` is set'))
    }
  }
  return causes
}
