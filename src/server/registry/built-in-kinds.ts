import { applyDefaults } from '../../kube/index.ts'
import { ageColumn, nameColumn } from './columns.ts'
import { allVerbs, type Kind, storageNameOf } from './kind.ts'
import { type Row, rows, text } from './kinds/index.ts'

/** The kinds that are served without a CustomResourceDefinition. */
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
    scale: row.scale,
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
