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
import { formatDuration } from '../kubernetes/object/index.ts'
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
    if (!role) return await this.inner.request(options)
    return await this.#send(role, (client, signal) => client.request({ ...options, signal: anySignal(options.signal, signal) }))
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

  async #send<T>(role: RoutedRole, send: (client: Client, signal: AbortSignal | undefined) => Promise<T>): Promise<T> {
    const { client, url } = await this.#routeTo(role)
    // A process that is paused accepts connections and never answers.
    const timeout = role === 'queue' && url !== undefined ? AbortSignal.timeout(queueTimeoutMs) : undefined
    try {
      return await send(client, timeout)
    } catch (error) {
      const code = timeout?.aborted ? `no answer within ${formatDuration(queueTimeoutMs)}` : undefined
      throw await roleError(error, role, { url, code }, this.inner)
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

/** The queue is read from memory: a process that needs longer is paused or overloaded. */
const queueTimeoutMs = 3_000

const anySignal = (...signals: (AbortSignal | undefined)[]): AbortSignal | undefined => {
  const present = signals.filter(signal => signal !== undefined)
  return present.length < 2 ? present[0] : AbortSignal.any(present)
}

/** Where the requests for a role go; `url` is undefined for the API server. */
type Route = { readonly client: Client; readonly url: string | undefined }

const roleOf = (path: string) => roles.find(([prefix]) => path.startsWith(prefix))?.[1]
