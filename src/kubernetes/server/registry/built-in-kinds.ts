import type { KubeObject, StructuralSchema } from '../../object/index.ts'
import { applyDefaults } from '../../schema/index.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { allVerbs, type Kind, storageNameOf } from './kind.ts'
import { type Row, rows, text, tokenRequestRow } from './kinds/index.ts'
import { definition, goForm, type TypeSchema, typeSchema } from './schemas/index.ts'
import type { Stored } from './stored.ts'
import { fillDefaults, ruleErrors } from './type-rules/index.ts'

/** The kinds that are served without a CustomResourceDefinition. */
export function builtInKinds(stored: Stored): Kind[] {
  return rows.map(row => (row.schema ? typedKind(row, row.schema, stored) : plainKind(row, stored)))
}

/** What is the same whether a kind has a type of Kubernetes' or fields of its own. */
function common(row: Row, stored: Stored) {
  const { group = '', version = 'v1', kind, plural, prepare, generate, admit, checkStatus } = row
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
    nameRule: row.nameRule ?? 'dns1123Subdomain',
    hasStatus: row.hasStatus ?? false,
    scale: row.scale,
    hasGeneration: row.hasGeneration ?? false,
    columns: row.columns ?? [nameColumn, ageColumn],
    selectableFields: row.selectableFields ?? [],
    isCustom: false,
    isVirtual: row.isVirtual,
    createsOnUpdate: row.createsOnUpdate,
    deprecation: row.deprecation,
    prepare: prepare && ((object, before) => prepare(object, before, stored)),
    generate: generate && (object => generate(object, stored)),
    admit: admit && ((object, before) => admit(object, before, stored)),
    checkStatus,
    warnings: row.warnings,
    raisesGeneration: row.raisesGeneration,
    orphansByDefault: row.orphansByDefault,
    answersDeleted: row.answersDeleted,
    graceSeconds: row.graceSeconds,
    refuseDelete: row.refuseDelete,
    fromStorage: row.fromStorage,
    toStorage: row.toStorage,
  } satisfies Partial<Kind>
}

/** Nothing of its type is read before the kind is used. */
function typedKind(row: Row, typeName: string, stored: Stored): Kind {
  const base = common(row, stored)
  const { check } = row
  const checkKind: Kind['check'] = check && ((object, before) => check(object, before, stored))
  let schema: TypeSchema | undefined
  let blank: Kind['blank']
  const root = (): TypeSchema => {
    schema ??= withOpenMetadata(typeSchema(typeName))
    return schema
  }
  return {
    ...base,
    typeName,
    get schema() {
      return root() as StructuralSchema
    },
    get description() {
      return definition(typeName).description ?? ''
    },
    get blank() {
      blank ??= { ...(goForm(root(), {}, base) as object), ...row.blank }
      return blank
    },
    complete: object => fillDefaults(root(), goForm(root(), object, base)) as KubeObject,
    check: (object, before) => {
      const causes = ruleErrors(root(), object, before)
      return checkKind ? [...causes, ...checkKind(object, before)] : causes
    },
    // The rules of types say nothing of statuses, which are written most often.
    checkStatus: row.checkStatus ?? checkKind ?? noCauses,
  }
}

function noCauses(): [] {
  return []
}

function plainKind(row: Row, stored: Stored): Kind {
  const { check } = row
  const schema: StructuralSchema = {
    type: 'object',
    description: row.description,
    ...(row.required && { required: row.required }),
    properties: {
      apiVersion: text('APIVersion defines the versioned schema of this representation of an object.'),
      kind: text('Kind is a string value representing the REST resource this object represents.'),
      metadata: openMetadata,
      ...row.fields,
    },
  }
  return {
    ...common(row, stored),
    schema,
    description: row.description ?? '',
    blank: { ...(applyDefaults(schema, {}) as object), ...row.blank },
    check: check && ((object, before) => check(object, before, stored)),
  }
}

/** Checked field by field in rest/, which is faster and words its errors as Kubernetes does. */
const openMetadata: StructuralSchema & TypeSchema = { type: 'object' }

function withOpenMetadata(schema: TypeSchema): TypeSchema {
  const { properties, zeros } = schema
  return { ...schema, properties: { ...properties, metadata: openMetadata }, zeros: zeros?.filter(([field]) => field !== 'metadata') }
}

/** What is posted to the subresource `token` of a ServiceAccount. */
export const tokenRequestKind: Kind = typedKind(tokenRequestRow, tokenRequestRow.schema, {
  get: () => undefined,
  all: () => [],
  inNamespace: () => [],
})
