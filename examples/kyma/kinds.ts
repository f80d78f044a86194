import type { Static } from 'typebox'
import { defineResource, type ObjectOf, Type } from '../../src/kubernetes/index.ts'

const group = 'inventory.kyma-project.io'
const version = 'v1alpha1'

/** The steps of a component in order; a new one has none. */
export const componentSteps = ['pending', 'started', 'failing', 'retrying', 'success'] as const
export type ComponentStep = (typeof componentSteps)[number]

const ComponentEntry = Type.Object({ name: Type.String({ minLength: 1 }), namespace: Type.String({ minLength: 1 }) })
export type ComponentEntry = Static<typeof ComponentEntry>

/** One cluster's worth of components. */
export const kymaResource = defineResource({
  group,
  version,
  kind: 'Kyma',
  plural: 'kymas',
  scope: 'Namespaced',
  description: 'A Kyma installation: the components that belong to it.',
  spec: Type.Object({ components: Type.Array(ComponentEntry, { description: 'What is installed, and into which namespace.' }) }),
  status: Type.Object({
    status: Type.Optional(Type.String({ description: 'pending or success.' })),
    waitingFor: Type.Optional(Type.Array(Type.String(), { description: 'Components that are not installed yet.' })),
  }),
  printerColumns: [
    { name: 'Status', jsonPath: '.status.status' },
    { name: 'WaitingFor', jsonPath: '.status.waitingFor', priority: 1 },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})
export type Kyma = ObjectOf<typeof kymaResource>

/** One component of one Kyma. */
export const componentResource = defineResource({
  group,
  version,
  kind: 'HelmComponent',
  plural: 'helmcomponents',
  scope: 'Namespaced',
  description: 'One component of a Kyma, installed from a Helm chart.',
  spec: Type.Object({
    componentName: Type.String(),
    chartLocation: Type.String(),
    version: Type.String(),
    namespace: Type.String({ description: 'Where it is installed.' }),
  }),
  status: Type.Object({
    status: Type.Optional(Type.String({ description: `One of ${componentSteps.join(', ')}.` })),
    lastReconciliation: Type.Optional(Type.String({ description: 'When the current step started.' })),
  }),
  printerColumns: [
    { name: 'Component', jsonPath: '.spec.componentName' },
    { name: 'Status', jsonPath: '.status.status' },
    { name: 'Since', jsonPath: '.status.lastReconciliation', type: 'date' },
  ],
})
export type HelmComponent = ObjectOf<typeof componentResource>

/** The components of every Kyma in the experiment. */
export const defaultComponents: readonly ComponentEntry[] = [
  ['istio', 'istio-system'],
  ['certificates', 'istio-system'],
  ['cluster-essentials', 'kyma-system'],
  ['istio-resources', 'kyma-system'],
  ['logging', 'kyma-system'],
  ['tracing', 'kyma-system'],
  ['kiali', 'kyma-system'],
  ['monitoring', 'kyma-system'],
  ['eventing', 'kyma-system'],
  ['ory', 'kyma-system'],
  ['api-gateway', 'kyma-system'],
  ['service-catalog', 'kyma-system'],
  ['service-catalog-addons', 'kyma-system'],
  ['rafter', 'kyma-system'],
  ['helm-broker', 'kyma-system'],
  ['cluster-users', 'kyma-system'],
  ['serverless', 'kyma-system'],
  ['application-connector', 'kyma-integration'],
].map(([name, namespace]) => ({ name, namespace }) as ComponentEntry)
