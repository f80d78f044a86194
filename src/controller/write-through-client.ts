import { type Client, type HandleOptions, ResourceClient, WrappedClient } from '../client/index.ts'
import type { KubeObject, Resource } from '../kube/index.ts'
import { deepFreeze } from './deep-freeze.ts'
import type { Informer } from './informer.ts'

/**
 * A client whose writes are in the caches before their callers go on: whoever runs next reads what was written, without
 * waiting for the watch. Only its handles (`resource`) do that; a raw `request` is not looked into.
 */
export class WriteThroughClient extends WrappedClient {
  readonly #cachesOf: (resource: Resource<unknown>) => readonly Informer<unknown>[]

  constructor(client: Client, cachesOf: (resource: Resource<unknown>) => readonly Informer<unknown>[]) {
    super(client)
    this.#cachesOf = cachesOf
  }

  override resource<Body>(resource: Resource<Body>, options?: HandleOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options, {
      written: object => this.#written(resource, object),
      deleted: (key, uid) => {
        for (const cache of this.#cachesOf(resource)) cache.applyLocalDelete(key, uid)
      },
    })
  }

  #written(resource: Resource<unknown>, object: KubeObject<unknown>): void {
    // Shared with the caches from here on. Whether there is one must not decide what a caller may do with its answer.
    deepFreeze(object)
    for (const cache of this.#cachesOf(resource)) cache.applyLocal(object)
  }
}
