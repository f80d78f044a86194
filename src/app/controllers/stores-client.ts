import type { ReadPendingOperations } from '../../controllers/dispatch/index.ts'
import type { CheckState } from '../../controllers/stack/index.ts'
import { type AccessOptions, type Client, createClient } from '../../kubernetes/client/index.ts'
import type { StateFacts } from '../../stores/state/index.ts'
import { readEndpoint } from '../discovery/index.ts'
import { pendingOperationsOf, stateCheckOf } from './state-check.ts'

export type StoresClientOptions = {
  /** Finds the address of the stores. */
  client: Client
  /** The credentials, which the stores accept too. */
  access: AccessOptions
}

type StackName = { readonly namespace: string; readonly name: string; readonly uid: string }

/** Stores that are stopped must not delay the decisions about Stacks. */
const checkTimeoutMs = 3_000
/** After a failure the stores are not asked for this long: a thousand Stacks do not wait for a thousand timeouts. */
const pauseAfterFailureMs = 5_000

/** The requests of the controllers to stores that run apart. Their address is read again after a failure, since they may move. */
export class StoresClient {
  readonly #options: StoresClientOptions
  #connection: Promise<Client> | undefined
  #pausedUntilMs = Number.NEGATIVE_INFINITY

  constructor(options: StoresClientOptions) {
    this.#options = options
  }

  /** Reads what the stores have of a state, as `oarlock up` reads it from its own. */
  readonly checkState: CheckState = async ({ metadata: { namespace = '', name, uid } }, expected) =>
    stateCheckOf(expected, await this.#facts({ namespace, name, uid }))

  /** Reads which operations were interrupted, as `oarlock up` reads it from its own. */
  readonly readPendingOperations: ReadPendingOperations = async stack => pendingOperationsOf(await this.#facts(stack))

  /** Deletes the states of a deleted Stack. */
  async removeStackData(stack: StackName): Promise<void> {
    try {
      await this.#request(stack, 'DELETE', 'data')
    } catch (cause) {
      throw new Error(`the state of Stack ${stack.namespace}/${stack.name} cannot be deleted: ${(cause as Error).message}`, { cause })
    }
  }

  async close(): Promise<void> {
    await (await this.#connection?.catch(() => undefined))?.close()
  }

  async #facts({ namespace, name, uid }: StackName): Promise<StateFacts> {
    if (performance.now() < this.#pausedUntilMs) throw new Error('the stores did not answer a moment ago')
    return (await this.#request({ namespace, name, uid }, 'GET', 'check', AbortSignal.timeout(checkTimeoutMs))) as StateFacts
  }

  async #request({ namespace, name, uid }: StackName, method: string, resource: string, signal?: AbortSignal): Promise<unknown> {
    this.#connection ??= this.#connect()
    const connection = this.#connection
    const path = `/state/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}/${resource}`
    try {
      return await (await (await connection).request({ method, path, query: { uid }, signal })).json()
    } catch (error) {
      // An answer such as 404 or 403 is one of these stores.
      if ((error as Error).name === 'StatusError') throw error
      this.#pausedUntilMs = performance.now() + pauseAfterFailureMs
      if (this.#connection === connection) {
        this.#connection = undefined
        void connection.then(client => client.close()).catch(() => {})
      }
      throw error
    }
  }

  async #connect(): Promise<Client> {
    const { client, access } = this.#options
    const stores = await readEndpoint(client, 'stores')
    if (!stores) throw new Error('no stores have published their address: start "oarlock stores"')
    return await createClient({ ...access, endpoint: { server: stores.url, caCertificate: stores.caCertificate } })
  }
}
