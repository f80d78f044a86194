/**
 * @module metrics: how the server is used, for `/metrics`: those of kube-apiserver's metrics that dashboards and alerts read, under its
 * names and labels, and what is particular to us as `oarlock_apiserver_*`. Start reading at `request-metrics.ts`.
 * In: requests as they end, the numbers of the store and of fairness/. Out: text in Prometheus' format.
 * Not here: who may read it (http/ asks auth/), metrics of controllers and workers (each in its own room).
 */
export { processMetrics } from './process-metrics.ts'
export { type RequestLabels, RequestMetrics } from './request-metrics.ts'
export { type ServerStats, serverMetrics } from './server-metrics.ts'
