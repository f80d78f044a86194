import type { StructuralSchema } from '../../../object/index.ts'

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

/** The fields of a CustomResourceDefinition except apiVersion, kind and metadata. */
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
          strategy: text('Strategy specifies how custom resources are converted between versions; this server supports None.'),
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
                  priority: {
                    type: 'integer',
                    format: 'int32',
                    description: 'Columns with a priority above 0 are shown only with -o wide.',
                  },
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
              description: 'The subresources of this version.',
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
            lastTransitionTime: { type: 'string', format: 'date-time', description: 'Time of the last transition of the status.' },
            message: text('Human-readable message of the last transition.'),
            observedGeneration: { type: 'integer', format: 'int64', description: 'The generation that the condition was set for.' },
            reason: text('Machine-readable reason of the last transition.'),
            status: text('True, False or Unknown.'),
            type: text('Established, NamesAccepted or Terminating.'),
          },
        },
      },
      observedGeneration: { type: 'integer', format: 'int64', description: 'The generation that was observed last.' },
      storedVersions: texts('All versions of CustomResources that were ever persisted.'),
    },
  },
}
