import { discovery } from '../app/index.ts'
import {
  type AccessOptions,
  type Client,
  createClient,
  type RequestOptions,
  type Response,
  type StreamResponse,
  WrappedClient,
} from '../kubernetes/client/index.ts'

/** The role that serves each path. */
const roles = [
  ['/state/', 'stores'],
  ['/logs/', 'stores'],
  ['/queue', 'queue'],
] as const

/**
 * Sends requests for states, logs and the queue to the role that has published its address, with the same credentials. A role that has
 * not is on the address of the API server, as in `oarlock up`.
 */
export class RoutedClient extends WrappedClient {
  readonly #access: AccessOptions
  readonly #clients = new Map<string, Promise<Client>>()

  constructor(inner: Client, access: AccessOptions) {
    super(inner)
    this.#access = access
  }

  override async request(options: RequestOptions): Promise<Response> {
    const role = roleOf(options.path)
    return await (role ? await this.#clientOf(role) : this.inner).request(options)
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    const role = roleOf(options.path)
    return await (role ? await this.#clientOf(role) : this.inner).stream(options)
  }

  override async close(): Promise<void> {
    const clients = await Promise.allSettled(this.#clients.values())
    await Promise.all(clients.map(client => (client.status === 'fulfilled' ? client.value.close() : undefined)))
    await this.inner.close()
  }

  #clientOf(role: 'stores' | 'queue'): Promise<Client> {
    const known = this.#clients.get(role)
    if (known) return known
    const found = this.#connect(role)
    this.#clients.set(role, found)
    return found
  }

  async #connect(role: 'stores' | 'queue'): Promise<Client> {
    const { readEndpoint } = await discovery()
    const endpoint = await readEndpoint(this.inner, role)
    if (!endpoint) return this.inner
    const { url, caCertificate } = endpoint
    return await createClient({ ...this.#access, endpoint: { server: url, caCertificate }, userAgent: 'oarlock-cli' })
  }
}

const roleOf = (path: string) => roles.find(([prefix]) => path.startsWith(prefix))?.[1]
