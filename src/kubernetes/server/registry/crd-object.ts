import {
  type Condition,
  type ConditionUpdate,
  compileJsonPath,
  duplicateValue,
  equalJson,
  getOwn,
  invalidValue,
  isJsonObject,
  type KubeObject,
  nameErrors,
  requiredValue,
  type StatusCause,
  type StructuralSchema,
  setCondition,
  tooMany,
  unsupportedValue,
} from '../../object/index.ts'
import { structuralErrors } from '../../schema/index.ts'

export type CrdNames = { plural: string; singular?: string; kind: string; listKind?: string; shortNames?: string[]; categories?: string[] }

export type CrdColumn = { name: string; type: string; jsonPath: string; format?: string; description?: string; priority?: number }

/** Paths of plain fields, each beginning with a dot. */
export type CrdScale = { specReplicasPath: string; statusReplicasPath: string; labelSelectorPath?: string }

export type CrdVersion = {
  name: string
  served: boolean
  storage: boolean
  deprecated?: boolean
  deprecationWarning?: string
  schema?: { openAPIV3Schema?: StructuralSchema }
  subresources?: { status?: object; scale?: CrdScale }
  additionalPrinterColumns?: CrdColumn[]
  selectableFields?: { jsonPath: string }[]
}

export type CrdBody = {
  spec: {
    group: string
    scope: 'Namespaced' | 'Cluster'
    names: CrdNames
    versions: CrdVersion[]
    conversion?: { strategy: string }
    preserveUnknownFields?: boolean
  }
  status?: { conditions?: Condition[]; acceptedNames?: CrdNames; storedVersions?: string[] }
}

export type Crd = KubeObject<CrdBody>

/** Names that others have already, and the words for it. */
export type NameConflict = { reason: string; message: string; fields: (keyof CrdNames)[] }

const text = (description: string): StructuralSchema => ({ type: 'string', description })
const texts = (description: string): StructuralSchema => ({
  type: 'array',
  description,
  items: { type: 'string' },
  'x-kubernetes-list-type': 'atomic',
})
const names: StructuralSchema = {
  type: 'object',
  description: 'Names specify the resource and kind names for the custom resource.',
  required: ['plural', 'kind'],
  properties: {
    categories: texts('Categories is a list of grouped resources this custom resource belongs to (e.g. all).'),
    kind: text('Kind is the serialized kind of the resource. It is normally CamelCase and singular.'),
    listKind: text('ListKind is the serialized kind of the list for this resource. Defaults to "<kind>List".'),
    plural: text('Plural is the plural name of the resource to serve, under /apis/<group>/<version>/.../<plural>.'),
    shortNames: texts('ShortNames are short names for the resource, used by clients to support invocations like kubectl get <shortname>.'),
    singular: text('Singular is the singular name of the resource. Defaults to lowercased kind.'),
  },
}

/** The fields of a CustomResourceDefinition beside apiVersion, kind and metadata. */
export const crdSchema: Record<string, StructuralSchema> = {
  spec: {
    type: 'object',
    description: 'Spec describes how the user wants the resources to appear.',
    required: ['group', 'names', 'scope', 'versions'],
    properties: {
      conversion: {
        type: 'object',
        description: 'Conversion defines conversion settings for the CRD.',
        required: ['strategy'],
        properties: {
          strategy: text('Strategy specifies how custom resources are converted between versions; this server knows None.'),
          webhook: { type: 'object', description: 'How to call the conversion webhook.', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
      group: text('Group is the API group of the defined custom resource.'),
      names,
      preserveUnknownFields: { type: 'boolean', description: 'Deprecated: must be false.' },
      scope: text('Scope indicates whether the resource is cluster- or namespace-scoped: Cluster or Namespaced.'),
      versions: {
        type: 'array',
        description: 'Versions is the list of all API versions of the defined custom resource.',
        'x-kubernetes-list-type': 'atomic',
        items: {
          type: 'object',
          required: ['name', 'served', 'storage'],
          properties: {
            additionalPrinterColumns: {
              type: 'array',
              description: 'Additional columns returned in Table output.',
              'x-kubernetes-list-type': 'atomic',
              items: {
                type: 'object',
                required: ['name', 'type', 'jsonPath'],
                properties: {
                  description: text('A human readable description of this column.'),
                  format: text('An optional OpenAPI type definition for this column.'),
                  jsonPath: text('A simple JSON path evaluated against each custom resource to produce the value for this column.'),
                  name: text('A human readable name for the column.'),
                  priority: { type: 'integer', format: 'int32', description: 'Columns above 0 are shown with -o wide only.' },
                  type: text('An OpenAPI type definition for this column.'),
                },
              },
            },
            deprecated: { type: 'boolean', description: 'Requests to this version get a warning header.' },
            deprecationWarning: text('Overrides the default warning.'),
            name: text('The version name, e.g. v1 or v2beta1.'),
            schema: {
              type: 'object',
              description: 'The schema used for validation, pruning, and defaulting of this version.',
              properties: {
                openAPIV3Schema: {
                  type: 'object',
                  description: 'The OpenAPI v3 schema to use for validation and pruning.',
                  'x-kubernetes-preserve-unknown-fields': true,
                },
              },
            },
            selectableFields: {
              type: 'array',
              description: 'JSON paths of fields that may be used as field selectors.',
              'x-kubernetes-list-type': 'atomic',
              items: { type: 'object', required: ['jsonPath'], properties: { jsonPath: text('A simple JSON path, such as .spec.color.') } },
            },
            served: { type: 'boolean', description: 'Whether this version is enabled via REST APIs.' },
            storage: { type: 'boolean', description: 'Whether this version is used to persist custom resources; exactly one is.' },
            subresources: {
              type: 'object',
              description: 'Which subresources this version has.',
              properties: {
                scale: { type: 'object', description: 'The /scale subresource.', 'x-kubernetes-preserve-unknown-fields': true },
                status: { type: 'object', description: 'The /status subresource.', 'x-kubernetes-preserve-unknown-fields': true },
              },
            },
          },
        },
      },
    },
  },
  status: {
    type: 'object',
    description: 'Status indicates the actual state of the CustomResourceDefinition.',
    properties: {
      acceptedNames: { ...names, required: undefined, description: 'The names that are actually being used to serve discovery.' },
      conditions: {
        type: 'array',
        description: 'State of particular aspects of a CustomResourceDefinition.',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['type'],
        items: {
          type: 'object',
          required: ['type', 'status'],
          properties: {
            lastTransitionTime: { type: 'string', format: 'date-time', description: 'When the status changed last.' },
            message: text('Why, for people.'),
            observedGeneration: { type: 'integer', format: 'int64', description: 'The generation it was set for.' },
            reason: text('Why, for machines.'),
            status: text('True, False or Unknown.'),
            type: text('Established, NamesAccepted or Terminating.'),
          },
        },
      },
      observedGeneration: { type: 'integer', format: 'int64', description: 'The generation that was last looked at.' },
      storedVersions: texts('All versions of CustomResources that were ever persisted.'),
    },
  },
}

/** Holds a definition back until its objects are gone. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** Kubernetes' defaults for a definition. */
export function prepareCrd(object: KubeObject, before: KubeObject | undefined): void {
  const { spec, metadata } = object as Crd
  if (!before && !metadata.finalizers?.includes(crdFinalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), crdFinalizer]
  if (!spec || typeof spec !== 'object' || !spec.names || typeof spec.names !== 'object') return
  if (typeof spec.names.kind === 'string') {
    spec.names.singular ||= spec.names.kind.toLowerCase()
    spec.names.listKind ||= `${spec.names.kind}List`
  }
  spec.conversion ??= { strategy: 'None' }
}

/** What a definition's schema cannot say. */
export function validateCrd(object: KubeObject, beforeObject: KubeObject | undefined): StatusCause[] {
  const { spec, metadata } = object as Crd
  const before = beforeObject as Crd | undefined
  const causes: StatusCause[] = []
  if (!spec || typeof spec !== 'object') return causes
  const { group = '', names = { plural: '', kind: '' }, versions = [], scope } = spec
  if (metadata.name !== `${names.plural}.${group}`)
    causes.push(invalidValue('metadata.name', metadata.name, `must be spec.names.plural+"."+spec.group`))
  for (const why of nameErrors(group, 'dns1123Subdomain')) causes.push(invalidValue('spec.group', group, why))
  if (group && !group.includes('.')) causes.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'))
  for (const why of nameErrors(names.plural, 'dns1035Label')) causes.push(invalidValue('spec.names.plural', names.plural, why))
  if (isProtected(group) && !metadata.annotations?.['api-approved.kubernetes.io']) {
    const why =
      'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
    causes.push(requiredValue('metadata.annotations[api-approved.kubernetes.io]', why))
  }
  for (const field of ['kind', 'listKind'] as const) {
    for (const why of nameErrors(String(names[field]).toLowerCase(), 'dns1035Label')) {
      causes.push(invalidValue(`spec.names.${field}`, names[field], `may have mixed case, but should otherwise match: ${why}`))
    }
  }
  for (const why of nameErrors(names.singular ?? '', 'dns1035Label')) causes.push(invalidValue('spec.names.singular', names.singular, why))
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[field] ?? []).entries()) {
      for (const why of nameErrors(name, 'dns1035Label')) causes.push(invalidValue(`spec.names.${field}[${index}]`, name, why))
    }
  }
  if (scope !== 'Namespaced' && scope !== 'Cluster') causes.push(unsupportedValue('spec.scope', scope, ['Cluster', 'Namespaced']))
  if (versions.filter(version => version.storage).length !== 1) {
    causes.push(
      invalidValue(
        'spec.versions',
        versions.map(version => version.name),
        'must have exactly one version marked as storage version',
      ),
    )
  }
  if (spec.conversion && spec.conversion.strategy !== 'None')
    causes.push(unsupportedValue('spec.conversion.strategy', spec.conversion.strategy, ['None']))
  if (spec.preserveUnknownFields) {
    const why = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    causes.push(invalidValue('spec.preserveUnknownFields', true, why))
  }
  // Kubernetes still keeps what all versions share in one place, and names its fields so.
  const isShared = (part: (version: CrdVersion) => unknown) => versions.every(version => equalJson(part(version), part(versions[0]!)))
  const hasOneSchema = isShared(version => version.schema ?? null)
  const hasOneTable = isShared(version => version.additionalPrinterColumns ?? null)
  const hasOneSelection = isShared(version => version.selectableFields ?? null)
  const hasOneScale = isShared(version => version.subresources ?? null)
  const seen = new Set<string>()
  for (const [index, version] of versions.entries()) {
    const path = `spec.versions[${index}]`
    for (const why of nameErrors(version.name, 'dns1035Label')) causes.push(invalidValue(`${path}.name`, version.name, why))
    if (seen.has(version.name)) causes.push(invalidValue(`${path}.name`, version.name, 'must be unique'))
    seen.add(version.name)
    const schema = version.schema?.openAPIV3Schema
    if (!schema) causes.push(requiredValue(`${path}.schema.openAPIV3Schema`))
    else if (!hasOneSchema) causes.push(...structuralErrors(schema, `${path}.schema.openAPIV3Schema`))
    else if (index === 0) causes.push(...structuralErrors(schema))
    if (!hasOneTable || index === 0) causes.push(...columnErrors(version.additionalPrinterColumns ?? [], hasOneTable ? 'spec' : path))
    if (!hasOneScale || index === 0)
      causes.push(...scaleErrors(version.subresources?.scale, `${hasOneScale ? 'spec' : path}.subresources.scale`))
    const selectablePath = hasOneSelection ? 'spec.selectableFields' : `${path}.selectableFields`
    if (!hasOneSelection || index === 0) causes.push(...selectableErrors(version.selectableFields ?? [], schema, selectablePath))
  }
  if (before) {
    const stored = before.status?.storedVersions ?? []
    for (const [index, name] of stored.entries()) {
      if (seen.has(name)) continue
      const why = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`
      causes.push(invalidValue(`status.storedVersions[${index}]`, name, why))
    }
    for (const [field, is, was] of [
      ['spec.group', group, before.spec.group],
      ['spec.scope', scope, before.spec.scope],
      ['spec.names.plural', names.plural, before.spec.names.plural],
      ['spec.names.kind', names.kind, before.spec.names.kind],
    ] as const) {
      if (is !== was) causes.push(invalidValue(field, is, 'field is immutable'))
    }
  }
  return causes
}

function isProtected(group: string): boolean {
  return /(^|\.)(k8s\.io|kubernetes\.io)$/.test(group)
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']

function columnErrors(columns: readonly CrdColumn[], path: string): StatusCause[] {
  return columns.flatMap((declared, index) => {
    const at = `${path}.additionalPrinterColumns[${index}]`
    const causes: StatusCause[] = []
    if (!declared.name) causes.push(requiredValue(`${at}.name`))
    if (!declared.type) causes.push(requiredValue(`${at}.type`))
    else if (!columnTypes.includes(declared.type)) {
      causes.push(invalidValue(`${at}.type`, declared.type, `must be one of ${columnTypes.join(',')}`))
    }
    if (!declared.jsonPath) causes.push(requiredValue(`${at}.JSONPath`))
    else causes.push(...jsonPathErrors(declared.jsonPath, `${at}.JSONPath`))
    return causes
  })
}

/** What a column cannot be read by must be refused here: afterwards the definition is compiled, and nobody is there to tell. */
function jsonPathErrors(jsonPath: string, path: string): StatusCause[] {
  if (!jsonPath.startsWith('.')) return [invalidValue(path, jsonPath, 'must be a simple json path starting with .')]
  try {
    compileJsonPath(jsonPath)
    return []
  } catch (error) {
    return [invalidValue(path, jsonPath, (error as Error).message)]
  }
}

const maxSelectableFields = 8

/** Only single values with a declared type can be selected by. */
function selectableErrors(fields: readonly { jsonPath: string }[], schema: StructuralSchema | undefined, path: string): StatusCause[] {
  const causes = fields.length > maxSelectableFields ? [tooMany(path, fields.length, maxSelectableFields)] : []
  const seen = new Set<string>()
  for (const [index, { jsonPath }] of fields.entries()) {
    const at = `${path}[${index}].jsonPath`
    const found = fieldAt(jsonPath, schema)
    if (jsonPath === '') causes.push(requiredValue(at))
    else if (typeof found === 'string') causes.push(invalidValue(at, jsonPath, `is an invalid path: ${found}`))
    else if (!['string', 'boolean', 'integer'].includes(found.type ?? '')) {
      const why = 'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      causes.push(invalidValue(at, jsonPath, why))
    }
    if (seen.has(jsonPath)) causes.push(duplicateValue(at, jsonPath))
    seen.add(jsonPath)
  }
  return causes
}

/** The schema of the field that a path such as `.spec.color` names, or why there is none. */
function fieldAt(jsonPath: string, schema: StructuralSchema | undefined): StructuralSchema | string {
  if (!jsonPath.startsWith('.')) return `expected [ or . but got: ${jsonPath.split(/[.[\]]/)[0]}`
  if (jsonPath.includes('[')) return 'array notation is not allowed'
  let found: StructuralSchema | undefined = schema
  for (const name of jsonPath.slice(1).split('.')) {
    const properties: unknown = found?.properties
    found = isJsonObject(properties) ? (getOwn(properties, name) as StructuralSchema | undefined) : undefined
    if (!isJsonObject(found)) return 'does not refer to a valid field'
  }
  return found ?? 'does not refer to a valid field'
}

function scaleErrors(scale: object | undefined, path: string): StatusCause[] {
  if (!scale) return []
  const causes: StatusCause[] = []
  const paths = scale as Record<string, unknown>
  for (const [field, root] of [
    ['specReplicasPath', '.spec'],
    ['statusReplicasPath', '.status'],
    ['labelSelectorPath', ''],
  ] as const) {
    const value = paths[field]
    if (value === undefined || value === '') {
      if (root !== '') causes.push(requiredValue(`${path}.${field}`))
    } else if (typeof value !== 'string' || !/^(\.[A-Za-z_][A-Za-z0-9_-]*)+$/.test(value)) {
      causes.push(invalidValue(`${path}.${field}`, value, 'must be a simple json path starting with .'))
    } else if (root !== '' && !value.startsWith(`${root}.`)) {
      causes.push(invalidValue(`${path}.${field}`, value, `should be a json path under ${root}`))
    }
  }
  return causes
}

/**
 * The status of a definition, decided with its write so that it is usable as soon as the write is answered.
 * @param conflict names who has one of the names already; undefined when all are free.
 */
export function crdStatus(
  crd: Crd,
  before: Crd | undefined,
  conflict: NameConflict | undefined,
  nowMs: number,
): NonNullable<CrdBody['status']> {
  const { names, versions } = crd.spec
  const storage = versions.find(version => version.storage)?.name
  const stored = before?.status?.storedVersions ?? []
  const old = before?.status?.conditions
  const accepted: ConditionUpdate = conflict
    ? { type: 'NamesAccepted', status: 'False', reason: conflict.reason, message: conflict.message }
    : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
  const established: ConditionUpdate = conflict
    ? { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' }
    : { type: 'Established', status: 'True', reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' }
  return {
    ...before?.status,
    conditions: setCondition(setCondition(old, accepted, nowMs), established, nowMs),
    acceptedNames: acceptedNames(names, before?.status?.acceptedNames, conflict?.fields ?? []),
    storedVersions: storage && !stored.includes(storage) ? [...stored, storage] : stored,
  }
}

/** The storage version is always among those that may be stored, whatever a status says. */
export function ensureStorageVersion(object: KubeObject): void {
  const { spec, status } = object as Crd
  if (!status || typeof status !== 'object' || !Array.isArray(status.storedVersions ?? []) || status.storedVersions?.length) return
  object.status = { ...status, storedVersions: spec.versions.filter(({ storage }) => storage).map(({ name }) => name) }
}

/** Each name that is free is accepted, also beside one that is not; that one stays what it was. */
function acceptedNames(wanted: CrdNames, before: CrdNames = { plural: '', kind: '' }, taken: readonly (keyof CrdNames)[]): CrdNames {
  const accepted = { ...wanted }
  for (const field of taken) {
    delete accepted[field]
    Object.assign(accepted, before[field] === undefined ? {} : { [field]: before[field] })
  }
  return accepted
}

/** A definition on its way out, as the answer to its deletion shows it; its objects go next. */
export function markTerminating(object: KubeObject, nowMs: number): KubeObject {
  const { status } = object as Crd
  if (!status || status.conditions?.some(({ type }) => type === 'Terminating')) return object
  const terminating: ConditionUpdate = {
    type: 'Terminating',
    status: 'True',
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  }
  return { ...object, status: { ...status, conditions: setCondition(status.conditions, terminating, nowMs) } }
}
