import type { KubeObject } from '../../../object/index.ts'
import { textAt } from './column-values.ts'
import type { KindDeclaration } from './kind-declaration.ts'

const group = 'resource.k8s.io'

const selectable = (field: string) => ({ field, read: (object: KubeObject) => textAt(object, field, '') })

/**
 * Kinds of dynamic resource allocation, which a scheduler needs to start. They are checked by their types only: the rules that kube-apiserver has between
 * fields, such as for selectors, belong to drivers and are theirs to report.
 */
export const dynamicResourceKinds: readonly KindDeclaration[] = [
  {
    group,
    kind: 'DeviceClass',
    plural: 'deviceclasses',
    cluster: true,
    typeName: 'io.k8s.api.resource.v1.DeviceClass',
    hasGeneration: true,
  },
  { group, kind: 'ResourceClaim', plural: 'resourceclaims', typeName: 'io.k8s.api.resource.v1.ResourceClaim', hasStatus: true },
  { group, kind: 'ResourceClaimTemplate', plural: 'resourceclaimtemplates', typeName: 'io.k8s.api.resource.v1.ResourceClaimTemplate' },
  {
    ...{ group, kind: 'ResourceSlice', plural: 'resourceslices', cluster: true, typeName: 'io.k8s.api.resource.v1.ResourceSlice' },
    ...{ hasGeneration: true, selectableFields: [selectable('spec.driver'), selectable('spec.nodeName')] },
  },
]
