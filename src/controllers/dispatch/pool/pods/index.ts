/**
 * @module dispatch/pool/pods: workers as Pods.
 * In: WorkerPools of mode Pod, and the status of their Pods. Out: Workers that own Pods with their credentials, created and deleted through the API.
 * Start reading at `pod-pool.ts`, the {@link PoolDriver} that creates, watches and deletes Pods. Pure: `make-pod.ts` builds the Pod of a worker,
 * `worker-pod-state.ts` derives the state of a worker from the status of its Pod, `decide-worker-pods.ts` decides what its Worker shows of it and when both are
 * deleted. `disruption-controller.ts` protects busy workers from evictions (`decide-disruption.ts`, `budget-controller.ts`).
 * Not done here: running the Pods, which is the work of a kubelet; tests write the status of Pods in its place.
 */
export { addDisruptionController } from './disruption-controller.ts'
export { type PodBody, podResource } from './pod.ts'
export { PodPool, type PodWorkerOptions } from './pod-pool.ts'
