/**
 * @module kubelet: requests that only the kubelet of a Node can serve: logs of Pods, and streams into them. Start reading at `kubelet-proxy.ts`.
 * In: authorized requests, the stored Pod and Node. Out: the response of the kubelet, as bytes. What is asked of the kubelet is decided by
 * `kubelet-path.ts`, where it is by `kubelet-address.ts`.
 * Out of scope: the protocols inside the streams, which client and kubelet agree on; rights (auth/).
 */
export { kubeletAddress } from './kubelet-address.ts'
export type { KubeletAddress } from './kubelet-connection.ts'
export type { PodStream } from './kubelet-path.ts'
export { KubeletProxy, type StreamRequest } from './kubelet-proxy.ts'
