import { compileJsonPath, type KubeObject, type StructuralSchema } from '../../../object/index.ts'
import { hasRules } from '../../../schema/index.ts'
import { compareVersions } from '../compare-versions.ts'
import { fieldReader } from '../field-path.ts'
import { formatAge } from '../human-duration.ts'
import { allVerbs, type Kind, storageNameOf } from '../kind.ts'
import { ageColumn, nameColumn, type PrinterColumn } from '../printer-columns.ts'
import { customScale, customScaleErrors } from '../scale.ts'
import type { Crd, CrdColumn, CrdVersion } from './crd.ts'
import { fromStored, type StorageVersion, toStored } from './storage-version.ts'

/**
 * Compiles a definition to its kinds, one for each served version.
 * @param storedSince see {@link StorageVersion.since}, for the schema that {@link storageSchemaOf} returns.
 */
export function kindsOfCrd(crd: Crd, storedSince: number): Kind[] {
  const { group, names, scope, versions } = crd.spec
  const storageName = versions.find(version => version.storage)!.name
  const storage: StorageVersion = { apiVersion: `${group}/${storageName}`, schema: storageSchemaOf(crd), since: storedSince }
  return versions
    .filter(version => version.served)
    .map(version => {
      const apiVersion = `${group}/${version.name}`
      const scale = version.subresources?.scale
      const schema = schemaOf(version)
      return {
        group,
        version: version.name,
        apiVersion,
        kind: names.kind,
        listKind: names.listKind ?? `${names.kind}List`,
        plural: names.plural,
        singular: names.singular ?? names.kind.toLowerCase(),
        shortNames: names.shortNames ?? [],
        categories: names.categories ?? [],
        namespaced: scope === 'Namespaced',
        verbs: allVerbs,
        storageName: storageNameOf(group, names.plural),
        schema,
        description: schema.description ?? '',
        nameRule: 'dns1123Subdomain',
        hasStatus: version.subresources?.status !== undefined,
        scale: scale && customScale(scale),
        hasGeneration: true,
        hasValidationRules: hasRules(schema),
        columns: columnsOf(version),
        selectableFields: (version.selectableFields ?? []).map(({ jsonPath }) => {
          const read = fieldReader(jsonPath)
          return { field: jsonPath.slice(1), read: (object: KubeObject) => formatField(read(object)) }
        }),
        isCustom: true,
        strategy: { validate: scale && (object => customScaleErrors(scale, object)) },
        deprecationWarning: version.deprecated ? deprecationOf(crd, version) : undefined,
        isTerminating: crd.metadata.deletionTimestamp !== undefined,
        fromStorage: fromStored(storage, { apiVersion, schema }),
        toStorage: toStored(storage, { apiVersion, schema }),
      } satisfies Kind
    })
}

function deprecationOf({ spec: { group, names, versions } }: Crd, version: CrdVersion): string {
  if (version.deprecationWarning) return version.deprecationWarning
  const better = versions.filter(other => other.served && !other.deprecated).map(other => other.name)
  const [newest] = better.sort(compareVersions)
  const instead = newest ? `; use ${group}/${newest} ${names.kind}` : ''
  return `${group}/${version.name} ${names.kind} is deprecated${instead}`
}

/** The schema of the storage version. */
export function storageSchemaOf({ spec }: Crd): StructuralSchema {
  return schemaOf(spec.versions.find(version => version.storage)!)
}

function schemaOf(version: CrdVersion): StructuralSchema {
  return completeSchema(version.schema?.openAPIV3Schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true })
}

/** Adds the fields that every object has and a definition may omit. */
function completeSchema(schema: StructuralSchema): StructuralSchema {
  return {
    ...schema,
    type: 'object',
    properties: {
      ...schema.properties,
      apiVersion: { type: 'string', description: 'APIVersion defines the versioned schema of this representation of an object.' },
      kind: { type: 'string', description: 'Kind is a string value representing the REST resource this object represents.' },
      // `rest/` validates metadata field by field, which is faster and produces the same errors as Kubernetes. A definition may only
      // restrict the name further.
      metadata: { type: 'object', ...(schema.properties?.metadata?.properties && { properties: schema.properties.metadata.properties }) },
    },
  }
}

function columnsOf(version: CrdVersion): PrinterColumn[] {
  const declared = version.additionalPrinterColumns ?? []
  if (declared.length === 0) return [nameColumn, { ...ageColumn, type: 'date' }]
  return [nameColumn, ...declared.map(toColumn)]
}

function toColumn(declared: CrdColumn): PrinterColumn {
  const read = readerOf(declared.jsonPath)
  const type = declared.type as PrinterColumn['type']
  return {
    name: declared.name,
    type,
    format: declared.format,
    description: declared.description ?? `Custom resource definition column (in JSONPath format): ${declared.jsonPath}`,
    priority: declared.priority ?? 0,
    read: (object, nowMs) => cellValue(type, read(object), nowMs),
  }
}

// Paths are validated when a definition is written. A definition that an older version stored must not prevent the server from starting.
function readerOf(jsonPath: string): (object: KubeObject) => unknown[] {
  try {
    return compileJsonPath(jsonPath)
  } catch {
    return () => []
  }
}

function cellValue(type: string, values: unknown[], nowMs: number): unknown {
  if (values.length === 0 || values[0] === null || values[0] === undefined) return type === 'date' && values.length > 0 ? '<unknown>' : null
  const [value] = values
  switch (type) {
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null
    case 'number':
      return typeof value === 'number' ? value : null
    case 'boolean':
      return typeof value === 'boolean' ? value : null
    case 'date':
      return formatAge(value, nowMs)
    default:
      return values.map(formatCell).join(',')
  }
}

function formatCell(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

function formatField(value: unknown): string {
  return value === undefined || value === null || typeof value === 'object' ? '' : String(value)
}
