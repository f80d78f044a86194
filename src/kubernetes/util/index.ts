/**
 * @module kubernetes/util: what several modules of the toolkit and of Oarlock need and no standard library has: backoff, a heap,
 * a keyed work queue, a token bucket, timers that tests can replace, the logger's interface.
 * In and out: plain values; time and randomness are passed in. `worker-thread.ts` starts threads and sends them requests; `source-files.ts`
 * is the one place that knows where the files of modules are. Knows nothing of Kubernetes objects, reads no file and opens no socket.
 * A helper belongs here only when two modules use it.
 */
export * from './backoff.ts'
export * from './heap.ts'
export * from './log.ts'
export * from './source-files.ts'
export * from './thread-requests.ts'
export * from './timers.ts'
export * from './token-bucket.ts'
export * from './work-queue.ts'
export * from './worker-thread.ts'
