/**
 * @module metrics: the content of `/metrics`: the metrics of kube-apiserver that dashboards and alerts use, under its names and labels,
 * and the server's own as `oarlock_apiserver_*`. Start reading at `server-metrics.ts`.
 * In: requests as they end (`request-metrics.ts`), the counters of storage/ and fairness/. Out: text in Prometheus' format.
 * Not here: who may read it (http/ asks auth/), metrics of controllers and workers (each has them in its own module).
 */
export { type RequestLabels, RequestMetrics } from './request-metrics.ts'
export { ServerMetrics } from './server-metrics.ts'
export type { ResourceCount, ServerStats } from './server-stats.ts'
