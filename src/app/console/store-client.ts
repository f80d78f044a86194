import {
  type AccessOptions,
  type Client,
  createClient,
  type RequestOptions,
  type Response,
  type StreamResponse,
  WrappedClient,
} from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import type { Endpoint } from '../discovery/index.ts'
import { consoleClient } from './console-client.ts'

/** A client of one user that sends requests for states, plans and logs to the stores, which run apart from the API server. */
export class StoreClient extends WrappedClient {
  readonly #access: AccessOptions
  readonly #find: () => Promise<Endpoint | undefined>
  #stores: Promise<Client> | undefined

  /** @param access of the user. @param find returns where the stores are; undefined if they have published no address. */
  constructor(inner: Client, access: AccessOptions, find: () => Promise<Endpoint | undefined>) {
    super(inner)
    this.#access = access
    this.#find = find
  }

  override async request(options: RequestOptions): Promise<Response> {
    return isOfStores(options) ? await this.#send(stores => stores.request(options)) : await this.inner.request(options)
  }

  override async stream(options: RequestOptions & { idleTimeoutMs?: number }): Promise<StreamResponse> {
    return isOfStores(options) ? await this.#send(stores => stores.stream(options)) : await this.inner.stream(options)
  }

  override async close(): Promise<void> {
    await this.#stores?.then(stores => stores.close()).catch(() => {})
    await this.inner.close()
  }

  async #send<T>(send: (stores: Client) => Promise<T>): Promise<T> {
    this.#stores ??= this.#connect()
    const used = this.#stores
    try {
      return await send(await used)
    } catch (error) {
      // They may have another address now.
      if (error instanceof StatusError && error.code !== 503) throw error
      if (this.#stores === used) this.#stores = undefined
      await used.then(stores => stores.close()).catch(() => {})
      throw error
    }
  }

  async #connect(): Promise<Client> {
    const endpoint = await this.#find()
    if (!endpoint) throw new StatusError('ServiceUnavailable', 'no stores have published their address: start "oarlock stores"')
    const { url, caCertificate } = endpoint
    return await createClient({ ...this.#access, endpoint: { server: url, caCertificate }, ...consoleClient })
  }
}

const isOfStores = ({ path }: RequestOptions) => path.startsWith('/state/') || path.startsWith('/logs/')
