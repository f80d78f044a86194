/**
 * @module lifecycle: what the server does by itself once a write is durable. Start reading at `lifecycle.ts`.
 * In: committed events. Out: further writes: dependents of absent owners deleted, namespaces and definitions emptied
 * before they go, old Events removed, roles and service accounts kept as they should be. Everything here can be cut off at any point and finds its way again at start.
 */
export { Lifecycle, type LifecycleOptions } from './lifecycle.ts'
