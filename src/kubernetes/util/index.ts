/**
 * @module kubernetes/util: helpers that several modules share and the standard library lacks: backoff, a heap, a keyed work queue,
 * a token bucket, seeded random numbers, replaceable timers, worker threads, the logger interface, the formatting of byte counts, truncated text, the response `100 Continue`, the creation of directories, files in directories of others, the responses to health checks and with a copy of a file, the URLs of servers, SHA-256, untrusted YAML, limits of connections, of concurrent calls and of open files.
 * In and out: plain values; time and randomness are passed in. `worker-thread.ts` starts threads and sends them requests;
 * `source-files.ts` resolves the files of modules. Out of scope: Kubernetes objects, opening sockets.
 * A helper belongs here only if two modules use it.
 */
export * from './at-most-every.ts'
export * from './backoff.ts'
export * from './client-limiter.ts'
export * from './connection-limiter.ts'
export * from './connection-limits.ts'
export * from './expect-continue.ts'
export * from './format-bytes.ts'
export * from './full-disk.ts'
export * from './health-checks.ts'
export * from './heap.ts'
export * from './https-url.ts'
export * from './log.ts'
export * from './make-data-directory.ts'
export * from './make-directories.ts'
export * from './network-of.ts'
export * from './open-files.ts'
export * from './parse-untrusted-yaml.ts'
export * from './root-directory.ts'
export * from './seeded-random.ts'
export * from './send-copy.ts'
export * from './server-address.ts'
export * from './sha256.ts'
export * from './source-files.ts'
export * from './thread-requests.ts'
export * from './timers.ts'
export * from './token-bucket.ts'
export * from './truncate.ts'
export * from './work-queue.ts'
export * from './worker-thread.ts'
export * from './yaml.ts'
