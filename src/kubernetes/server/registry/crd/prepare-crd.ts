import type { KubeObject } from '../../../object/index.ts'
import type { Crd } from './crd.ts'

/** Delays the deletion of a definition until its objects are deleted. */
export const crdFinalizer = 'customresourcecleanup.apiextensions.k8s.io'

/** Sets Kubernetes' defaults of a definition. */
export function prepareCrd(object: KubeObject, oldObject: KubeObject | undefined): void {
  const { spec, metadata } = object as Crd
  if (!oldObject && !metadata.finalizers?.includes(crdFinalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), crdFinalizer]
  if (!spec || typeof spec !== 'object' || !spec.names || typeof spec.names !== 'object') return
  if (typeof spec.names.kind === 'string') {
    spec.names.singular ||= spec.names.kind.toLowerCase()
    spec.names.listKind ||= `${spec.names.kind}List`
  }
  spec.conversion ??= { strategy: 'None' }
}
