/** The kinds of the home partition from which the routing map follows. They are installed where there are partitions, and nowhere else. */
import { tenantResource } from '../../api/index.ts'
import { type CustomResource, conditionsSchema, defineResource, type ObjectOf, Type } from '../../kubernetes/object/index.ts'

const { group, version } = tenantResource
const roles = ['Tenants', 'Resources'] as const

export const partitionResource = defineResource({
  ...{ group, version, kind: 'Partition', plural: 'partitions', scope: 'Cluster' },
  description: 'An API server behind the gateway. The partition in which this object was created is home.',
  shortNames: ['part'],
  categories: ['oarlock'],
  spec: Type.Object(
    {
      number: Type.Integer({
        minimum: 0,
        maximum: 63,
        description:
          'Part of every resource version that the server assigns (in the file of oarlock serve --partition): no two may have the same.',
      }),
      server: Type.Optional(
        Type.String({
          pattern: '^https://',
          description: 'Address of the server, for gateways: the server itself sets it at its start. Unset: it has never been started.',
        }),
      ),
      caCertificate: Type.Optional(Type.String({ description: 'PEM of the authority of its certificate. Default: that of home.' })),
      roles: Type.Array(Type.Enum([...roles]), {
        description:
          'Tenants: has namespaces of Tenants. Resources: has Workers, Nodes and PersistentVolumes. Without any, only home is one.',
        'x-kubernetes-list-type': 'set',
      }),
    },
    {
      'x-kubernetes-validations': [
        { rule: 'self.number == oldSelf.number', message: 'spec.number is immutable: resource versions contain it' },
      ],
    },
  ),
  status: Type.Object({
    conditions: Type.Optional(conditionsSchema),
    observedGeneration: Type.Optional(Type.Integer()),
    announcedRoles: Type.Optional(
      Type.Array(Type.Enum([...roles]), {
        description:
          'Roles of which all partitions have known: the partition may have objects of them until it is deleted, and is part of their lists. Set by gateways before the first object.',
        'x-kubernetes-list-type': 'set',
      }),
    ),
  }),
  printerColumns: [
    { name: 'Number', jsonPath: '.spec.number', type: 'integer' },
    { name: 'KindsMatch', jsonPath: '.status.conditions[?(@.type=="KindsMatch")].status' },
    { name: 'Roles', jsonPath: '.spec.roles' },
    { name: 'Server', jsonPath: '.spec.server' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

/** That the name of an owned object belongs to a partition. Its own name is that of the object, a dot and its resource. */
export const nameClaimResource = defineResource({
  ...{ group, version, kind: 'NameClaim', plural: 'nameclaims', scope: 'Cluster' },
  description: 'Which partition has an object whose name is unique in all of them. Created by gateways before the object.',
  spec: Type.Object(
    {
      resource: Type.String({ description: 'Such as namespaces, or workers.oarlock.dev.' }),
      name: Type.String({ minLength: 1, description: 'Name of the object.' }),
      partition: Type.String({ minLength: 1, description: 'Name of the Partition that has it.' }),
      tenant: Type.Optional(Type.String({ minLength: 1, description: 'Of a namespace: the Tenant that it was created for.' })),
    },
    {
      'x-kubernetes-validations': [
        {
          rule: 'self.resource == oldSelf.resource && self.name == oldSelf.name && self.partition == oldSelf.partition',
          message: 'resource, name and partition are immutable: delete the object, and its claim goes with it',
        },
      ],
    },
  ),
  status: Type.Object({}),
  printerColumns: [
    { name: 'Resource', jsonPath: '.spec.resource' },
    { name: 'Object', jsonPath: '.spec.name' },
    { name: 'Partition', jsonPath: '.spec.partition' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

/** How long after a change of its claim an object may be created. The claim is removed later than that: `controllers/claims`. */
export const createWithinMs = 30_000

/** On the Partition of home: the resource version at which a partition was removed last. Watches from before begin again with a list. */
export const relistFromAnnotation = 'oarlock.dev/relist-from'

export type Partition = ObjectOf<typeof partitionResource>
export type NameClaim = ObjectOf<typeof nameClaimResource>

export const gatewayKinds: readonly CustomResource<unknown>[] = [partitionResource, nameClaimResource]

export const claimName = (resource: string, name: string): string => `${name}.${resource}`

/** Of a NameClaim; its value is different with each renewal. */
export const renewedAnnotation = 'oarlock.dev/renewed'
