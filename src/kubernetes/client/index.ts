/**
 * @module kubernetes/client: connects to any Kubernetes API. Start reading at `client.ts`, then `resource-client.ts` and `list-watch.ts`.
 * In: a kubeconfig (or equivalent options) and declared kinds. Out: typed objects, events, `StatusError` and `ConnectionError`.
 * Out of scope: caches, queues and reconciling (`controller/`), and the meaning of objects.
 * Layers: `http-client.ts` adds credentials and retries to a `transport.ts` (`http-transport.ts` or `local-transport.ts`);
 * `connection-pool.ts` pipelines short requests. Pure decisions: `decide-retry.ts` and `decide-list-watch.ts`.
 */
import '../util/check-node-version.ts'

export { TokenBucket, type TokenRate } from '../util/token-bucket.ts'
export {
  type Client,
  type ClientOptions,
  clusterCaCertificate,
  createClient,
  hasOnlyClientCertificate,
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
  type SelfAccessReviewBody,
  type ServiceAccountBody,
  secretResource,
  selfAccessReviewResource,
  serviceAccountResource,
} from './core-kinds.ts'
export { type InstallOptions, installKinds } from './install-kinds.ts'
export { LineSplitter, WatchDecodeError } from './line-splitter.ts'
export { type ListWatchOptions, listWatch } from './list-watch.ts'
export { isMetadataOnly, metadataOnly } from './metadata-only.ts'
export { patchIf } from './patch-if.ts'
export type { RateLimitOptions } from './request-rate-limiter.ts'
export { type AccessOptions, type ClusterOptions, isInPod } from './resolve-cluster-access.ts'
export { ResourceClient, type WriteObserver } from './resource-client.ts'
export type {
  ApplyOptions,
  DeleteCollectionOptions,
  DeleteOptions,
  GetOptions,
  ListOptions,
  PatchOptions,
  PatchType,
  ResourceClientOptions,
  WatchOptions,
  WriteOptions,
} from './resource-options.ts'
export { type Query, resourcePath } from './resource-path.ts'
export { compareResourceVersions } from './resource-version.ts'
export { disableBundledRootCertificates } from './root-certificates.ts'
export { allowedSubjectName, isSubjectName } from './subject-name.ts'
export { WrappedClient } from './wrapped-client.ts'
