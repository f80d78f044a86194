import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'

const labelSelector = Type.Object(
  {
    matchLabels: Type.Optional(Type.Record(Type.String(), Type.String())),
    matchExpressions: Type.Optional(
      Type.Array(
        Type.Object({
          key: Type.String({ minLength: 1 }),
          operator: Type.Enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
          values: Type.Optional(Type.Array(Type.String())),
        }),
      ),
    ),
  },
  { description: 'Namespaces by their labels; an empty selector matches every one. A namespace that a Tenant names goes by its name.' },
)

const spec = Type.Object({
  namespaces: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      description: 'Namespaces that belong together. Of several Tenants that claim one, the oldest has it.',
      'x-kubernetes-list-type': 'set',
    }),
  ),
  namespaceSelector: Type.Optional(labelSelector),
  weight: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000,
      default: defaults.tenantWeight,
      description: 'Share of the workers while tenants want more than there are: twice the weight, twice the time.',
    }),
  ),
  limits: Type.Optional(
    Type.Object(
      { maxRunning: Type.Optional(Type.Integer({ minimum: 0, description: 'Never more Runs at once; 0 stops it. Default: no limit.' })) },
      { description: 'What the tenant may use, also while nobody else wants it.' },
    ),
  ),
})

const status = Type.Object({
  observedGeneration: Type.Optional(Type.Integer()),
  conditions: Type.Optional(conditionsSchema),
  namespaces: Type.Optional(Type.Integer({ description: 'Namespaces that exist and belong to it.' })),
  queued: Type.Optional(Type.Integer({ description: 'Runs that wait.' })),
  running: Type.Optional(Type.Integer({ description: 'Runs that have a worker.' })),
})

/** Which namespaces belong together, and how much of the workers they get. See docs/queue.md. */
export const tenantResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Tenant',
  plural: 'tenants',
  scope: 'Cluster',
  description:
    'Namespaces that belong together, their weight in the queue and their limits. A namespace of no Tenant is a tenant of its own.',
  shortNames: ['tnt'],
  categories: ['oarlock'],
  spec,
  status,
  printerColumns: [
    { name: 'Weight', jsonPath: '.spec.weight', type: 'integer' },
    { name: 'Queued', jsonPath: '.status.queued', type: 'integer' },
    { name: 'Running', jsonPath: '.status.running', type: 'integer' },
    { name: 'Max', jsonPath: '.spec.limits.maxRunning', type: 'integer' },
    { name: 'Namespaces', jsonPath: '.status.namespaces', type: 'integer' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

export type TenantSpec = Static<typeof spec>
export type TenantStatus = Static<typeof status>
export type Tenant = ObjectOf<typeof tenantResource>
