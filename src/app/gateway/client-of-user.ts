import { type GatewayUser, userHeaders } from '../../gateway/index.ts'
import { type Client, type RequestOptions, type Response, type StreamResponse, WrappedClient } from '../../kubernetes/client/index.ts'

/** A client of a partition whose requests are those of a user, over connections that the partition knows as those of a front proxy. */
export class ClientOfUser extends WrappedClient {
  readonly #headers: Record<string, string | string[]>

  constructor(inner: Client, user: GatewayUser) {
    super(inner)
    this.#headers = userHeaders(user)
  }

  override request(options: RequestOptions): Promise<Response> {
    return this.inner.request({ ...options, headers: { ...options.headers, ...this.#headers } })
  }

  override stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    return this.inner.stream({ ...options, headers: { ...options.headers, ...this.#headers } })
  }
}
