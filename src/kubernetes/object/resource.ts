import type { Static, TSchema } from 'typebox'
import type { Json, JsonObject, KubeObject, NewObject } from './object.ts'
import { type StructuralSchema, toStructuralSchema } from './structural-schema.ts'

/** One column of `kubectl get`. A `priority` above 0 shows it only with `-o wide`. */
export type PrinterColumn = {
  name: string
  jsonPath: string
  type?: 'string' | 'integer' | 'number' | 'boolean' | 'date'
  format?: string
  description?: string
  priority?: number
}

/** Identifies a kind in the API. The core group is the empty string. */
export type ResourceName = {
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly plural: string
  readonly scope: 'Namespaced' | 'Cluster'
}

/**
 * A kind as the client, controllers and the server use it. `Body` is the TypeScript type of the fields other than apiVersion,
 * kind and metadata; it exists only at compile time.
 */
export type Resource<Body = { [field: string]: unknown }> = ResourceName & {
  readonly apiVersion: string
  /** Never set: carries `Body` to `ObjectOf` and to typed clients. */
  readonly body?: Body
}

/** The object type of a resource: `type Stack = ObjectOf<typeof stackResource>`. */
export type ObjectOf<R> = R extends Resource<infer Body> ? KubeObject<Body> : never
/** An object of the resource as a client sends it to create or apply it. */
export type NewObjectOf<R> = R extends Resource<infer Body> ? NewObject<Body> : never

export type CustomResourceOptions<Spec extends TSchema, StatusSchema extends TSchema> = {
  group: string
  version: string
  kind: string
  plural: string
  scope: 'Namespaced' | 'Cluster'
  description: string
  shortNames?: string[]
  categories?: string[]
  spec: Spec
  status: StatusSchema
  printerColumns?: PrinterColumn[]
  /** JSON paths such as `.spec.workerName` that field selectors may use. */
  selectableFields?: string[]
}

/** A custom kind: everything about it is derived from one TypeBox declaration. */
export type CustomResource<Body> = Resource<Body> & {
  readonly schema: StructuralSchema
  /** The CustomResourceDefinition to apply to any Kubernetes API server. */
  toCrd(): NewObject<{ spec: JsonObject }>
}

/** Identifies an existing kind, such as `describeResource<SecretBody>({ group: '', version: 'v1', … })`. */
export function describeResource<Body>(name: ResourceName): Resource<Body> {
  return { ...name, apiVersion: name.group ? `${name.group}/${name.version}` : name.version }
}

/**
 * Derives the TypeScript type, the structural schema and the CRD of a kind from one TypeBox declaration.
 * The status is a subresource, as everywhere in Oarlock.
 * The schema is created on first access, since most processes need only the names; this
 * @throws {TypeError} if the declaration uses JSON Schema that a structural schema cannot express.
 */
export function defineResource<Spec extends TSchema, StatusSchema extends TSchema>(
  options: CustomResourceOptions<Spec, StatusSchema>,
): CustomResource<{ spec: Static<Spec>; status?: Static<StatusSchema> }> {
  const { group, version, kind, plural, scope } = options
  let cachedSchema: StructuralSchema | undefined
  const schema = (): StructuralSchema => ({
    type: 'object',
    description: options.description,
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      // `kubectl explain` shows nothing for a field without a description.
      spec: { description: 'The desired state.', ...toStructuralSchema(options.spec, `${kind}.spec`) },
      status: { description: 'The observed state.', ...toStructuralSchema(options.status, `${kind}.status`) },
    },
  })
  return {
    ...describeResource({ group, version, kind, plural, scope }),
    get schema() {
      cachedSchema ??= schema()
      return cachedSchema
    },
    toCrd: () => ({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope,
        names: {
          kind,
          plural,
          singular: kind.toLowerCase(),
          listKind: `${kind}List`,
          ...unlessEmpty('shortNames', options.shortNames),
          ...unlessEmpty('categories', options.categories),
        },
        versions: [
          {
            name: version,
            served: true,
            storage: true,
            schema: { openAPIV3Schema: schema() as unknown as JsonObject },
            subresources: { status: {} },
            ...unlessEmpty(
              'additionalPrinterColumns',
              options.printerColumns?.map(column => ({ ...column, type: column.type ?? 'string' })),
            ),
            ...unlessEmpty(
              'selectableFields',
              options.selectableFields?.map(jsonPath => ({ jsonPath })),
            ),
          },
        ],
      },
    }),
  }
}

/** A server does not store empty lists: server-side apply by another manager would conflict about a list that only looks different. */
const unlessEmpty = (name: string, list: Json[] = []): JsonObject => (list.length === 0 ? {} : { [name]: list })
