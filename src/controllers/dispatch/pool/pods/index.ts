/**
 * pods: workers as Pods. `make-pod.ts` says what a worker's Pod looks like and `read-pod.ts` what its status means, both pure;
 * `pod-pool.ts` is the {@link PoolDriver} that creates, watches and removes them.
 * Not done here: running them. That is the work of a kubelet; the tests play it by writing the Pods' status.
 */
export { credentialDirectory } from './make-pod.ts'
export { type PodBody, podResource } from './pod.ts'
export { PodPool, type PodWorkerOptions } from './pod-pool.ts'
