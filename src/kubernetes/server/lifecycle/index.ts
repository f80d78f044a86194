/**
 * @module lifecycle: the controllers inside the server. Start reading at `lifecycle.ts`.
 * In: committed events. Out: further writes: garbage collection, deletion of the content of namespaces and definitions, expiry of Events, and
 * the objects that every cluster has: namespaces, roles, service accounts, PriorityClasses, the Service `default/kubernetes`.
 * A controller may be interrupted at any point: at the next start it continues from what is stored.
 */
export { advertiseAddress } from './advertise-address.ts'
export { kubernetesServiceNames } from './kubernetes-service-controller.ts'
export { Lifecycle, type LifecycleOptions } from './lifecycle.ts'
export type { OwnerElsewhere, OwnerLookUp } from './owners-elsewhere.ts'
