/**
 * @module client: talks to any Kubernetes API. Start reading at `client.ts`, then `resource-client.ts` and `list-watch.ts`.
 * In: a kubeconfig (or what replaces it) and declared kinds. Out: typed objects, events, `StatusError` and `ConnectionError`.
 * Not done here: caches, queues and reconciling (`controller/`), what an object means (`api/`).
 * What may be retried or resumed is decided without I/O in `decide-retry.ts` and `decide-list-watch.ts`.
 */
export { type Backoff, jitteredDelayMs } from '../util/backoff.ts'
export { TokenBucket, type TokenRate } from '../util/token-bucket.ts'
export {
  type Client,
  type ClientOptions,
  createClient,
  type RequestObserver,
  type RequestOptions,
  type Response,
  type StreamResponse,
} from './client.ts'
export { bootClock, type Clock, systemClock } from './clock.ts'
export { ClientClosedError, ConnectionError } from './connection-error.ts'
export {
  type ConfigMapBody,
  type CrdBody,
  configMapResource,
  crdResource,
  type EventBody,
  eventResource,
  type LeaseBody,
  leaseResource,
  type NamespaceBody,
  namespaceResource,
  type ObjectReference,
  type SecretBody,
  secretResource,
} from './core-kinds.ts'
export type { ClusterOptions } from './find-access.ts'
export { type InstallOptions, installKinds } from './install-kinds.ts'
export { type ListWatchOptions, listWatch } from './list-watch.ts'
export { isMetadataOnly, metadataOnly } from './metadata-only.ts'
export type { PaceOptions } from './request-rate-limit.ts'
export { ResourceClient, type WriteObserver } from './resource-client.ts'
export type {
  ApplyOptions,
  DeleteOptions,
  GetOptions,
  HandleOptions,
  ListOptions,
  PatchOptions,
  PatchType,
  WatchOptions,
  WriteOptions,
} from './resource-options.ts'
export { type Query, resourcePath } from './resource-path.ts'
export { compareResourceVersions } from './resource-version.ts'
export { leaveOutRootCertificates } from './root-certificates.ts'
export { GarbageError, LineSplitter } from './watch-lines.ts'
export { WrappedClient } from './wrapped-client.ts'
