import { randomUUID } from 'node:crypto'
import type { Client } from '../client/index.ts'
import { type KubeObject, parseKey } from '../object/index.ts'
import type { Log } from '../util/log.ts'
import type { Informer } from './informer.ts'
import type { ReconcileRequest } from './reconcile.ts'
import type { Tenure } from './sharding/tenures.ts'
import { parseQueueKey } from './sources.ts'

/** Caches of the objects of `for`, by cluster. */
export type OwnCaches = ReadonlyMap<string | undefined, { informer: Informer<unknown>; client: Client }>

/** A class because of its lazy parts: most reconciles log nothing, and a child logger per reconcile would cost more than the queue. */
export class LazyReconcileRequest implements ReconcileRequest {
  readonly key: string
  readonly cluster: string | undefined
  readonly attempt: number
  readonly signal: AbortSignal
  readonly client: Client
  readonly informer: Informer<unknown>
  readonly shard: ReconcileRequest['shard']
  readonly isLeading: () => boolean
  readonly #log: Log
  #child: Log | undefined
  #reconcileId: string | undefined
  #object: KubeObject<unknown> | undefined
  #hasRead = false

  constructor(
    text: string,
    attempt: number,
    signal: AbortSignal,
    log: Log,
    own: OwnCaches,
    shard: { tenure: Tenure; client: Client } | undefined,
    isLeading: () => boolean,
  ) {
    const { key, cluster } = parseQueueKey(text)
    const { client, informer } = own.get(cluster) as { informer: Informer<unknown>; client: Client }
    this.key = key
    this.cluster = cluster
    this.attempt = attempt
    this.signal = signal
    this.client = shard?.client ?? client
    this.informer = informer
    this.shard = shard?.tenure
    this.isLeading = isLeading
    this.#log = log
    // Now, while the bucket is held: an object that leaves the cache with its bucket must not look deleted.
    if (shard) void this.object
  }

  get object(): KubeObject<unknown> | undefined {
    // Read once, so that a check of it holds for the rest of the reconcile.
    if (!this.#hasRead) this.#object = this.informer.get(this.key)
    this.#hasRead = true
    return this.#object
  }

  get name(): string {
    return parseKey(this.key).name
  }

  get namespace(): string | undefined {
    return parseKey(this.key).namespace
  }

  get reconcileId(): string {
    this.#reconcileId ??= randomUUID()
    return this.#reconcileId
  }

  get log(): Log {
    this.#child ??= this.#log.child({
      key: this.key,
      reconcileId: this.reconcileId,
      ...(this.cluster !== undefined && { cluster: this.cluster }),
    })
    return this.#child
  }
}

/** For its trace span. */
export function identify({ key, cluster, reconcileId, attempt }: LazyReconcileRequest) {
  return { key, cluster, reconcileId, attempt }
}
