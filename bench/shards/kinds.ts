import { defineResource, Type } from '../../src/kubernetes/index.ts'

const group = 'bench.oarlock.dev'
const version = 'v1'

/** The root: as large as a Kyma of examples/kyma, with what a reconcile wrote and with which fence. */
export const rootResource = defineResource({
  group,
  version,
  kind: 'Kyma',
  plural: 'kymas',
  scope: 'Namespaced',
  description: 'A root whose replicas are measured.',
  spec: Type.Object({
    revision: Type.Integer(),
    components: Type.Array(Type.Object({ name: Type.String(), namespace: Type.String() })),
  }),
  status: Type.Object({
    revision: Type.Optional(Type.Integer()),
    fence: Type.Optional(Type.Integer()),
    member: Type.Optional(Type.String()),
    count: Type.Optional(Type.Integer()),
  }),
})

/** What a root owns. */
export const childResource = defineResource({
  group,
  version,
  kind: 'Component',
  plural: 'components',
  scope: 'Namespaced',
  description: 'A component of a root.',
  spec: Type.Object({
    componentName: Type.String(),
    chartLocation: Type.String(),
    version: Type.String(),
    namespace: Type.String(),
  }),
  status: Type.Object({ status: Type.Optional(Type.String()) }),
})
