import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { runPolicyFields, runPolicyRules } from './run-policy.ts'
import { count } from './shared.ts'

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
  {
    description:
      'Selects namespaces by label, in addition to namespaces. An empty selector matches every namespace. A Tenant that lists a namespace by name takes precedence over one that selects it.',
  },
)

const spec = Type.Object(
  {
    namespaces: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        description: 'Names of the namespaces of this tenant. A namespace that several Tenants list belongs to the oldest of them.',
        'x-kubernetes-list-type': 'set',
      }),
    ),
    namespaceSelector: Type.Optional(labelSelector),
    weight: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        default: defaults.tenantWeight,
        description:
          'Share of worker time relative to other tenants while Runs are queued: a tenant with twice the weight gets twice the time.',
      }),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          maxRunning: Type.Optional(
            Type.Integer({ minimum: 0, description: 'Maximum number of concurrent Runs; 0 starts none. Default: no limit.' }),
          ),
        },
        { description: 'Hard limits, which apply even when workers are idle.' },
      ),
    ),
    ...runPolicyFields,
  },
  { 'x-kubernetes-validations': runPolicyRules },
)

const status = Type.Object({
  observedGeneration: Type.Optional(count('The generation of the spec that this status describes.')),
  conditions: Type.Optional(conditionsSchema),
  namespaces: Type.Optional(count('Number of existing namespaces that belong to the tenant.')),
  queued: Type.Optional(count('Number of queued Runs.')),
  running: Type.Optional(count('Number of Runs that are assigned to a worker.')),
})

/** A group of namespaces with its share of the workers. See docs/queue.md. */
export const tenantResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Tenant',
  plural: 'tenants',
  scope: 'Cluster',
  description:
    'Tenant groups namespaces and sets their weight in the queue, their limits and the isolation that their Runs must have. Sandboxed Runs share caches within their tenant only. A namespace without a Tenant is a tenant of its own.',
  shortNames: ['tnt'],
  categories: ['oarlock'],
  spec,
  status,
  printerColumns: [
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
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
