import {
  type Client,
  type HandleOptions,
  type RequestObserver,
  type RequestOptions,
  ResourceClient,
  type Response,
  type StreamResponse,
} from '../client/index.ts'
import type { KubeObject, Resource } from '../kube/index.ts'
import { deepFreeze } from './deep-freeze.ts'
import type { Informer } from './informer.ts'

/**
 * A client whose writes are in the caches before their callers go on: whoever runs next reads what was written, without
 * waiting for the watch. Only its handles (`resource`) do that; a raw `request` is not looked into.
 */
export class WriteThroughClient implements Client {
  readonly #client: Client
  readonly #cachesOf: (resource: Resource<unknown>) => readonly Informer<unknown>[]

  constructor(client: Client, cachesOf: (resource: Resource<unknown>) => readonly Informer<unknown>[]) {
    this.#client = client
    this.#cachesOf = cachesOf
  }

  get server(): string {
    return this.#client.server
  }

  get defaultNamespace(): string {
    return this.#client.defaultNamespace
  }

  get fieldManager(): string {
    return this.#client.fieldManager
  }

  resource<Body>(resource: Resource<Body>, options?: HandleOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options, {
      written: object => this.#written(resource, object),
      deleted: (key, uid) => {
        for (const cache of this.#cachesOf(resource)) cache.applyLocalDelete(key, uid)
      },
    })
  }

  discover(apiVersion: string, kind: string): Promise<Resource> {
    return this.#client.discover(apiVersion, kind)
  }

  request(options: RequestOptions): Promise<Response> {
    return this.#client.request(options)
  }

  stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse> {
    return this.#client.stream(options)
  }

  observeRequests(observer: RequestObserver): () => void {
    return this.#client.observeRequests(observer)
  }

  close(): Promise<void> {
    return this.#client.close()
  }

  #written(resource: Resource<unknown>, object: KubeObject<unknown>): void {
    // Shared with the caches from here on. Whether there is one must not decide what a caller may do with its answer.
    deepFreeze(object)
    for (const cache of this.#cachesOf(resource)) cache.applyLocal(object)
  }
}
