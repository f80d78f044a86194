import { type KubeObject, parseKey } from '../../object/index.ts'
import type { OwnCaches } from '../lazy-reconcile-request.ts'
import { parseQueueKey } from '../sources.ts'
import { bucketOf, bucketOfObject, labeledBucketOf } from './bucket.ts'
import type { Shards } from './shards.ts'
import type { Tenure } from './tenures.ts'

/** Which keys of one controller this process may reconcile. */
export class ShardedKeys {
  readonly #shards: Shards
  readonly #by: 'root' | 'owned'
  readonly #own: OwnCaches
  /** Keys in the queue whose root is not in the cache, mostly because it was deleted: removed with their last reconcile. */
  readonly #withoutRoot = new Map<string, number>()

  /** @param by `owned`: the kind of the controller is owned itself, so that its keys have the bucket of their root. */
  constructor(shards: Shards, by: 'root' | 'owned', own: OwnCaches) {
    this.#shards = shards
    this.#by = by
    this.#own = own
  }

  /** Whether a change of `object` makes `key` due in this process. `isRoot`: the object is the one that the key names. */
  admits(queueKey: string, object: KubeObject<unknown>, isRoot: boolean): boolean {
    const ofRoot = this.#bucketOfRoot(queueKey)
    const bucket = ofRoot ?? (isRoot ? bucketOfObject(this.#by, object) : this.#bucketOfChild(object))
    if (bucket === undefined || !this.#shards.tenureOf(bucket)) return false
    if (ofRoot === undefined) this.#withoutRoot.set(queueKey, bucket)
    return true
  }

  /** The right to reconcile a key; undefined: its owner reconciles all keys of the bucket, so it may be forgotten here. */
  tenureOf(queueKey: string): Tenure | undefined {
    const bucket = this.#bucketOfRoot(queueKey) ?? this.#withoutRoot.get(queueKey)
    return bucket === undefined ? undefined : this.#shards.tenureOf(bucket)
  }

  /**
   * The tenure for one reconcile that begins now. Of a kind that is owned itself, someone who edits its bucket label moves the object to another member while
   * this one works on it: then nothing may be written any more. Nor once it does not exist: a later attempt sees that.
   */
  whileLabeled(queueKey: string, tenure: Tenure): Tenure {
    const { cluster, key } = parseQueueKey(queueKey)
    const informer = this.#own.get(cluster)?.informer
    const object = this.#by === 'owned' ? informer?.get(key) : undefined
    if (!informer || !object) return tenure
    const hasMoved = () => {
      const cached = informer.get(key)
      if (cached) return cached.metadata.uid !== object.metadata.uid || bucketOfObject('owned', cached) !== tenure.bucket
      // A cache that gave up the bucket shows nothing: its work may finish.
      return informer.isInShard(object)
    }
    return { ...tenure, isHeld: () => tenure.isHeld() && !hasMoved(), mayWrite: () => tenure.mayWrite() && !hasMoved() }
  }

  /**
   * For a key whose root is not in the cache: whether the API server has an object of this name in another bucket. It was deleted and created again,
   * and the owner of that bucket reconciles it.
   */
  async isRecreatedElsewhere(queueKey: string, bucket: number, signal: AbortSignal): Promise<boolean> {
    const { cluster, key } = parseQueueKey(queueKey)
    const own = this.#own.get(cluster)
    if (!own) return false
    const { name, namespace } = parseKey(key)
    const object = await own.client.resource(own.informer.resource).getOrUndefined(name, { namespace, signal })
    return object !== undefined && own.informer.selects(object) && bucketOfObject(this.#by, object) !== bucket
  }

  /** The key is not in the queue any more. */
  forget(queueKey: string): void {
    this.#withoutRoot.delete(queueKey)
  }

  /** For a root that is not in the cache. Anyone who may edit a child can change its label, so it must agree with the UID of its owner. */
  #bucketOfChild({ metadata }: KubeObject<unknown>): number | undefined {
    const labeled = labeledBucketOf(metadata.labels)
    if (this.#by === 'owned') return labeled
    const owner = metadata.ownerReferences?.find(({ controller }) => controller)
    return owner && bucketOf(owner.uid) === labeled ? labeled : undefined
  }

  #bucketOfRoot(queueKey: string): number | undefined {
    const { cluster, key } = parseQueueKey(queueKey)
    const informer = this.#own.get(cluster)?.informer
    if (this.#by === 'owned') return labeledBucketOf(informer?.get(key)?.metadata.labels)
    const uid = informer?.uidOf(key)
    return uid === undefined ? undefined : bucketOf(uid)
  }
}
