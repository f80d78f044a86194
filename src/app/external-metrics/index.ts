/**
 * @module app/external-metrics: the aggregated API `external.metrics.k8s.io/v1beta1`, from which a HorizontalPodAutoscaler reads what pools of
 * mode External need. Start reading at `start-external-metrics.ts`.
 * In: the status of WorkerPools, which the leader writes. Out: an API for kube-apiserver's aggregation layer, served by every controller process,
 * also by those that do not lead: an aggregated API that does not answer blocks the deletion of namespaces.
 *
 * | file | what it decides |
 * |---|---|
 * | `pool-metrics.ts` | the metrics, and their values by selector |
 * | `discovery-documents.ts` | what clients discover |
 * | `external-metrics-handler.ts` | paths, permissions, errors |
 * | `front-proxy-identity.ts` | which user a request of kube-apiserver is for |
 * | `front-proxy.ts` | the settings by which a front proxy is recognized, as they change |
 * | `serving-certificate.ts` | the certificate that all processes share |
 * | `ca-bundle.ts` | its authority in the APIService |
 * | `retried-task.ts` | when a failed renewal, or a listener that did not open, is retried |
 *
 * Out of scope: how many workers a pool needs (`controllers/dispatch/pool/`).
 */
export { type ExternalMetricsOptions, startExternalMetrics } from './start-external-metrics.ts'
