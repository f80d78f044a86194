import type { StructuralSchema } from '../../object/index.ts'
import { bindingKind, type Kind, publishedSchemas, tokenRequestKind } from '../registry/index.ts'

/** A schema of OpenAPI: a structural schema with references. */
export type OpenApiSchema = { [key: string]: unknown }

const metaName = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** The schema name of a kind, as in Kubernetes: `io.k8s.api.core.v1.Secret`, `dev.oarlock.v1alpha1.Stack`. */
export function schemaName({ group, version, kind, isCustom, typeName }: Kind): string {
  if (typeName !== undefined) return typeName
  if (isCustom) return `${group.split('.').reverse().join('.')}.${version}.${kind}`
  if (group === 'apiextensions.k8s.io') return `io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.${version}.${kind}`
  return `io.k8s.api.${group === '' ? 'core' : group.split('.')[0]}.${version}.${kind}`
}

export const scaleSchemaName = 'io.k8s.api.autoscaling.v1.Scale'

/** The schemas of `kinds`, of their lists and of the types they refer to. References begin with `prefix`. */
export function schemasOf(kinds: Iterable<Kind>, prefix: string): Record<string, OpenApiSchema> {
  const reference = (name: string, description?: string): OpenApiSchema => ({
    ...(description && { description }),
    allOf: [{ $ref: prefix + name }],
  })
  const all = [...kinds]
  const names = [`${metaName}.ObjectMeta`, `${metaName}.DeleteOptions`, ...all.flatMap(kind => kind.typeName ?? [])]
  if (all.some(kind => kind.scale)) names.push(scaleSchemaName)
  if (all.some(kind => kind.storageName === 'serviceaccounts')) names.push(schemaName(tokenRequestKind))
  if (all.some(kind => kind.storageName === 'pods')) names.push(schemaName(bindingKind))
  const schemas: Record<string, OpenApiSchema> = {
    ...publishedSchemas(names, prefix),
    [`${metaName}.ListMeta`]: listMetaSchema as OpenApiSchema,
    [`${metaName}.Patch`]: {
      type: 'object',
      description: 'Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.',
    },
    [`${metaName}.Status`]: statusSchema as OpenApiSchema,
  }
  for (const kind of all) {
    const name = schemaName(kind)
    const { group, version } = kind
    schemas[name] ??= {
      ...(kind.schema as OpenApiSchema),
      properties: { ...(kind.schema.properties as object), metadata: reference(`${metaName}.ObjectMeta`, "Standard object's metadata.") },
      'x-kubernetes-group-version-kind': [{ group, version, kind: kind.kind }],
    }
    if (kind.isVirtual) continue
    schemas[`${name}List`] = {
      type: 'object',
      description: `${kind.listKind} is a list of ${kind.kind}`,
      required: ['items'],
      properties: {
        apiVersion: text('APIVersion defines the versioned schema of this representation of an object.'),
        items: { type: 'array', description: `List of ${kind.plural}.`, items: reference(name) },
        kind: text('Kind is a string value representing the REST resource this object represents.'),
        metadata: reference(`${metaName}.ListMeta`, 'Standard list metadata.'),
      },
      'x-kubernetes-group-version-kind': [{ group, version, kind: kind.listKind }],
    }
  }
  return schemas
}

const text = (description: string): StructuralSchema => ({ type: 'string', description })

const listMetaSchema: StructuralSchema = {
  type: 'object',
  description: 'ListMeta describes metadata that synthetic resources must have, including lists and various status objects.',
  properties: {
    continue: text('Set if the user set a limit on the number of items returned and there are more.'),
    remainingItemCount: {
      type: 'integer',
      format: 'int64',
      description: 'The number of subsequent items in the list which are not included.',
    },
    resourceVersion: text('Identifies the version of the store that the list was read at.'),
    selfLink: text('Deprecated: always empty.'),
  },
}

const statusSchema: StructuralSchema = {
  type: 'object',
  description: "Status is a return value for calls that don't return other objects.",
  properties: {
    apiVersion: text('APIVersion defines the versioned schema of this representation of an object.'),
    code: { type: 'integer', format: 'int32', description: 'Suggested HTTP return code for this status, 0 if not set.' },
    details: { type: 'object', description: 'Extended data associated with the reason.', 'x-kubernetes-preserve-unknown-fields': true },
    kind: text('Kind is a string value representing the REST resource this object represents.'),
    message: text('A human-readable description of the status of this operation.'),
    metadata: listMetaSchema,
    reason: text('A machine-readable description of why this operation is in the "Failure" status.'),
    status: text('Status of the operation: "Success" or "Failure".'),
  },
}
