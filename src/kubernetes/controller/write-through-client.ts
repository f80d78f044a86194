import {
  type Client,
  type RequestOptions,
  ResourceClient,
  type ResourceClientOptions,
  type Response,
  WrappedClient,
  type WriteObserver,
} from '../client/index.ts'
import type { KubeObject, Resource } from '../object/index.ts'
import { deepFreeze } from './deep-freeze.ts'
import type { Informer } from './informer.ts'

type CachesOf = (resource: Resource<unknown>) => readonly Informer<unknown>[]

/**
 * A client whose writes are in the caches before the caller continues: the next reader sees them without waiting for the watch. Only
 * its handles (`resource`) do this; a raw `request` is passed through. `beforeWrite` is called when a
 * write begins and immediately before each attempt is sent: if it throws, nothing is sent. Requests that are not sent yet are dropped when the
 * signal that it returns aborts, and the connections of those without a response are reset. `prepare` may change what is created or applied.
 */
export class WriteThroughClient extends WrappedClient {
  readonly #cachesOf: CachesOf
  readonly #beforeWrite: (() => AbortSignal | undefined) | undefined
  readonly #prepare: WriteObserver['prepare']

  constructor(client: Client, cachesOf: CachesOf, beforeWrite?: () => AbortSignal | undefined, prepare?: WriteObserver['prepare']) {
    super(client)
    this.#cachesOf = cachesOf
    this.#beforeWrite = beforeWrite
    this.#prepare = prepare
  }

  override request(options: RequestOptions): Promise<Response> {
    return this.#beforeWrite && options.method !== 'GET' ? this.#write(options, this.#beforeWrite) : this.inner.request(options)
  }

  override resource<Body>(resource: Resource<Body>, options?: ResourceClientOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options, {
      prepare: this.#prepare,
      written: object => this.#written(resource, object),
      deleted: (key, uid) => {
        for (const cache of this.#cachesOf(resource)) cache.applyLocalDelete(key, uid)
      },
    })
  }

  async #write(options: RequestOptions, beforeWrite: () => AbortSignal | undefined): Promise<Response> {
    const signal = beforeWrite()
    const both = signal && options.signal ? AbortSignal.any([signal, options.signal]) : (signal ?? options.signal)
    const beforeSend = () => {
      beforeWrite()
      options.beforeSend?.()
    }
    return await this.inner.request({ ...options, signal: both, resetSignal: signal, beforeSend })
  }

  #written(resource: Resource<unknown>, object: KubeObject<unknown>): void {
    // Shared with the caches from here on. Frozen even without a cache, so that callers see the same behavior either way.
    deepFreeze(object)
    for (const cache of this.#cachesOf(resource)) cache.applyLocal(object)
  }
}
