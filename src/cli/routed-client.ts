import { discovery } from '../app/index.ts'
import {
  type AccessOptions,
  type Client,
  createClient,
  hasOnlyClientCertificate,
  type RequestOptions,
  type Response,
  type StreamResponse,
  WrappedClient,
} from '../kubernetes/client/index.ts'
import { certificateError, type RoutedRole, roleError } from './role-error.ts'

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
  readonly #routes = new Map<RoutedRole, Promise<Route>>()

  constructor(inner: Client, access: AccessOptions) {
    super(inner)
    this.#access = access
  }

  override async request(options: RequestOptions): Promise<Response> {
    const role = roleOf(options.path)
    return role ? await this.#send(role, client => client.request(options)) : await this.inner.request(options)
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number | undefined }): Promise<StreamResponse> {
    const role = roleOf(options.path)
    return role ? await this.#send(role, client => client.stream(options)) : await this.inner.stream(options)
  }

  override async close(): Promise<void> {
    const routes = await Promise.allSettled(this.#routes.values())
    await Promise.all(routes.map(route => (route.status === 'fulfilled' ? route.value.client.close() : undefined)))
    await this.inner.close()
  }

  async #send<T>(role: RoutedRole, send: (client: Client) => Promise<T>): Promise<T> {
    const { client, url } = await this.#routeTo(role)
    try {
      return await send(client)
    } catch (error) {
      throw await roleError(error, role, url, this.inner)
    }
  }

  #routeTo(role: RoutedRole): Promise<Route> {
    const known = this.#routes.get(role)
    if (known) return known
    const found = this.#connect(role)
    this.#routes.set(role, found)
    return found
  }

  async #connect(role: RoutedRole): Promise<Route> {
    const { readEndpoint } = await discovery()
    const endpoint = await readEndpoint(this.inner, role)
    if (!endpoint) return { client: this.inner, url: undefined }
    const { url, caCertificate } = endpoint
    if (await hasOnlyClientCertificate(this.#access)) throw certificateError(role)
    const client = await createClient({ ...this.#access, endpoint: { server: url, caCertificate }, userAgent: 'oarlock-cli' })
    return { client, url }
  }
}

/** Where the requests for a role go; `url` is undefined for the API server. */
type Route = { readonly client: Client; readonly url: string | undefined }

const roleOf = (path: string) => roles.find(([prefix]) => path.startsWith(prefix))?.[1]
