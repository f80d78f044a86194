import type { Resource } from '../object/index.ts'
import type { Client, RequestObserver, RequestOptions, Response, StreamResponse } from './client.ts'
import { ResourceClient } from './resource-client.ts'
import type { ResourceClientOptions } from './resource-options.ts'

/**
 * A client that delegates to another one. Extend it and override {@link request} and {@link stream} to change all
 * requests: to inject faults, to record, or to set another name for the audit log.
 */
export class WrappedClient implements Client {
  protected readonly inner: Client

  constructor(inner: Client) {
    this.inner = inner
  }

  get server(): string {
    return this.inner.server
  }

  get defaultNamespace(): string {
    return this.inner.defaultNamespace
  }

  get fieldManager(): string {
    return this.inner.fieldManager
  }

  resource<Body>(resource: Resource<Body>, options?: ResourceClientOptions): ResourceClient<Body> {
    return new ResourceClient(this, resource, options)
  }

  discover(apiVersion: string, kind: string): Promise<Resource> {
    return this.inner.discover(apiVersion, kind)
  }

  request(options: RequestOptions): Promise<Response> {
    return this.inner.request(options)
  }

  stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    return this.inner.stream(options)
  }

  observeRequests(observer: RequestObserver): () => void {
    return this.inner.observeRequests(observer)
  }

  /** Closes the wrapped client. */
  close(): Promise<void> {
    return this.inner.close()
  }
}
