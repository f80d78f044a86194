/**
 * @module registry/kinds: the declarations of the built-in kinds, a file for each family of kinds.
 * In: nothing. Out: declarations that `built-in-kinds.ts` compiles to `Kind`s. The strategy functions of a kind are next to its
 * declaration. Most kinds have a Kubernetes type, which is read from `schemas/` when the kind is first used.
 */
import { appKinds } from './apps.ts'
import { autoscalingKinds } from './autoscaling.ts'
import { batchKinds } from './batch.ts'
import { configKinds } from './config.ts'
import { coordinationKinds } from './coordination.ts'
import { definitionKinds } from './definitions.ts'
import { discoveryKinds } from './discovery.ts'
import { dynamicResourceKinds } from './dynamic-resources.ts'
import { eventKinds } from './events.ts'
import type { KindDeclaration } from './kind-declaration.ts'
import { limitKinds } from './limits.ts'
import { namespaceKinds } from './namespace.ts'
import { networkingKinds } from './networking.ts'
import { nodeKinds } from './nodes.ts'
import { bindingDeclaration, podKinds } from './pods.ts'
import { policyKinds } from './policy.ts'
import { rbacKinds } from './rbac.ts'
import { reviewKinds } from './reviews.ts'
import { runtimeClassKinds } from './runtime-class.ts'
import { schedulingKinds } from './scheduling.ts'
import { serviceAccountKinds } from './service-account.ts'
import { serviceKinds } from './services.ts'
import { storageKinds } from './storage.ts'
import { volumeKinds } from './volumes.ts'

export const kindDeclarations: readonly KindDeclaration[] = [
  ...namespaceKinds,
  ...configKinds,
  ...serviceAccountKinds,
  ...eventKinds,
  ...podKinds,
  ...nodeKinds,
  ...serviceKinds,
  ...volumeKinds,
  ...limitKinds,
  ...appKinds,
  ...batchKinds,
  ...autoscalingKinds,
  ...coordinationKinds,
  ...rbacKinds,
  ...reviewKinds,
  ...discoveryKinds,
  ...networkingKinds,
  ...policyKinds,
  ...schedulingKinds,
  ...storageKinds,
  ...runtimeClassKinds,
  ...dynamicResourceKinds,
  ...definitionKinds,
]

export { type KindDeclaration, stringField } from './kind-declaration.ts'
export { tokenRequestDeclaration } from './reviews.ts'
export { systemPriorityClasses } from './scheduling.ts'
export { kubernetesServiceIp } from './service-allocation.ts'
export { bindingDeclaration }
