import Type from 'typebox'
import { defineResource } from '../../src/kubernetes/object/index.ts'

const condition = Type.Object({
  type: Type.String(),
  status: Type.Enum(['True', 'False', 'Unknown']),
  reason: Type.String(),
  message: Type.String(),
  lastTransitionTime: Type.String(),
  observedGeneration: Type.Optional(Type.Integer()),
})

/** A custom kind for tests of the client and the controller library. */
export const boatResource = defineResource({
  group: 'test.oarlock.dev',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Integer(), color: Type.Optional(Type.String()) }),
  status: Type.Object({
    manned: Type.Optional(Type.Integer()),
    note: Type.Optional(Type.String()),
    observedGeneration: Type.Optional(Type.Integer()),
    conditions: Type.Optional(Type.Array(condition)),
  }),
})
