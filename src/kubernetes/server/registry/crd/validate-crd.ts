import {
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
  tooMany,
  unsupportedValue,
} from '../../../object/index.ts'
import { structuralErrors } from '../../../schema/index.ts'
import type { Crd, CrdColumn, CrdNames, CrdVersion } from './crd.ts'

/** Rules of a definition that its schema cannot express. */
export function validateCrd(object: KubeObject, oldObject: KubeObject | undefined): StatusCause[] {
  const crd = object as Crd
  if (!crd.spec || typeof crd.spec !== 'object') return []
  const { group = '', names = { plural: '', kind: '' }, versions = [] } = crd.spec
  return [
    ...namesErrors(crd, group, names),
    ...specErrors(crd.spec, versions),
    ...versionErrors(versions),
    ...(oldObject ? updateErrors({ ...crd.spec, group, names, versions }, oldObject as Crd) : []),
  ]
}

function namesErrors({ metadata }: Crd, group: string, names: CrdNames): StatusCause[] {
  const causes: StatusCause[] = []
  if (metadata.name !== `${names.plural}.${group}`)
    causes.push(invalidValue('metadata.name', metadata.name, `must be spec.names.plural+"."+spec.group`))
  for (const reason of nameErrors(group, 'dns1123Subdomain')) causes.push(invalidValue('spec.group', group, reason))
  if (group && !group.includes('.')) causes.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'))
  for (const reason of nameErrors(names.plural, 'dns1035Label')) causes.push(invalidValue('spec.names.plural', names.plural, reason))
  if (isProtected(group) && !metadata.annotations?.['api-approved.kubernetes.io']) {
    const reason =
      'protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
    causes.push(requiredValue('metadata.annotations[api-approved.kubernetes.io]', reason))
  }
  for (const field of ['kind', 'listKind'] as const) {
    for (const reason of nameErrors(String(names[field]).toLowerCase(), 'dns1035Label')) {
      causes.push(invalidValue(`spec.names.${field}`, names[field], `may have mixed case, but should otherwise match: ${reason}`))
    }
  }
  for (const reason of nameErrors(names.singular ?? '', 'dns1035Label'))
    causes.push(invalidValue('spec.names.singular', names.singular, reason))
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, name] of (names[field] ?? []).entries()) {
      for (const reason of nameErrors(name, 'dns1035Label')) causes.push(invalidValue(`spec.names.${field}[${index}]`, name, reason))
    }
  }
  return causes
}

function specErrors(spec: Crd['spec'], versions: readonly CrdVersion[]): StatusCause[] {
  const { scope } = spec
  const causes: StatusCause[] = []
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
    const reason = 'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead'
    causes.push(invalidValue('spec.preserveUnknownFields', true, reason))
  }
  return causes
}

function versionErrors(versions: readonly CrdVersion[]): StatusCause[] {
  const causes: StatusCause[] = []
  // As in Kubernetes, errors in what all versions share have a path outside of `versions`.
  const isShared = (part: (version: CrdVersion) => unknown) => versions.every(version => equalJson(part(version), part(versions[0]!)))
  const hasOneSchema = isShared(version => version.schema ?? null)
  const hasOneTable = isShared(version => version.additionalPrinterColumns ?? null)
  const hasOneSelection = isShared(version => version.selectableFields ?? null)
  const hasOneScale = isShared(version => version.subresources ?? null)
  const seen = new Set<string>()
  for (const [index, version] of versions.entries()) {
    const path = `spec.versions[${index}]`
    for (const reason of nameErrors(version.name, 'dns1035Label')) causes.push(invalidValue(`${path}.name`, version.name, reason))
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
  return causes
}

/** A version in which objects may be stored must stay; group, scope and names are immutable. */
function updateErrors({ group, scope, names, versions }: Crd['spec'], oldCrd: Crd): StatusCause[] {
  const causes: StatusCause[] = []
  const stored = oldCrd.status?.storedVersions ?? []
  for (const [index, name] of stored.entries()) {
    if (versions.some(version => version.name === name)) continue
    const reason = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`
    causes.push(invalidValue(`status.storedVersions[${index}]`, name, reason))
  }
  for (const [field, value, oldValue] of [
    ['spec.group', group, oldCrd.spec.group],
    ['spec.scope', scope, oldCrd.spec.scope],
    ['spec.names.plural', names.plural, oldCrd.spec.names.plural],
    ['spec.names.kind', names.kind, oldCrd.spec.names.kind],
  ] as const) {
    if (value !== oldValue) causes.push(invalidValue(field, value, 'field is immutable'))
  }
  return causes
}

function isProtected(group: string): boolean {
  return /(^|\.)(k8s\.io|kubernetes\.io)$/.test(group)
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']

function columnErrors(columns: readonly CrdColumn[], path: string): StatusCause[] {
  return columns.flatMap((declared, index) => {
    const itemPath = `${path}.additionalPrinterColumns[${index}]`
    const causes: StatusCause[] = []
    if (!declared.name) causes.push(requiredValue(`${itemPath}.name`))
    if (!declared.type) causes.push(requiredValue(`${itemPath}.type`))
    else if (!columnTypes.includes(declared.type)) {
      causes.push(invalidValue(`${itemPath}.type`, declared.type, `must be one of ${columnTypes.join(',')}`))
    }
    if (!declared.jsonPath) causes.push(requiredValue(`${itemPath}.JSONPath`))
    else causes.push(...jsonPathErrors(declared.jsonPath, `${itemPath}.JSONPath`))
    return causes
  })
}

/** An invalid path must be rejected here: later the definition is compiled, and no client can receive the error. */
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

/** Validates selectable fields, which must be scalar fields of the schema. */
function selectableErrors(fields: readonly { jsonPath: string }[], schema: StructuralSchema | undefined, path: string): StatusCause[] {
  const causes = fields.length > maxSelectableFields ? [tooMany(path, fields.length, maxSelectableFields)] : []
  const seen = new Set<string>()
  for (const [index, { jsonPath }] of fields.entries()) {
    const itemPath = `${path}[${index}].jsonPath`
    const found = fieldAt(jsonPath, schema)
    if (jsonPath === '') causes.push(requiredValue(itemPath))
    else if (typeof found === 'string') causes.push(invalidValue(itemPath, jsonPath, `is an invalid path: ${found}`))
    else if (!['string', 'boolean', 'integer'].includes(found.type ?? '')) {
      const reason = 'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.'
      causes.push(invalidValue(itemPath, jsonPath, reason))
    }
    if (seen.has(jsonPath)) causes.push(duplicateValue(itemPath, jsonPath))
    seen.add(jsonPath)
  }
  return causes
}

/** The schema of the field at a path such as `.spec.color`, or the error message if there is none. */
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
