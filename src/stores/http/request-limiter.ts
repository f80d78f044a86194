import type { IncomingMessage, ServerResponse } from 'node:http'
import { ClientLimiter, type ClientLimits, LimitExceededError, networkOf } from '../../kubernetes/util/index.ts'
import { HttpError, type HttpUser } from './http-body.ts'

/** Deciding about one request asks the API server up to three times; the controllers of an all-in-one process need it too. */
const authorizationLimits: ClientLimits = { concurrent: 64, concurrentPerClient: 8, waitingPerClient: 256, waiting: 4_096 }
const serviceLimits: ClientLimits = { concurrent: 1_024, concurrentPerClient: 16, waitingPerClient: 256, waiting: 4_096 }

export type LimitedRequest = {
  /** @throws {HttpError} 429 */
  authorize<Access>(user: HttpUser | undefined, decide: () => Promise<Access>): Promise<Access>
  /**
   * Runs `work`, and counts it until its response was sent.
   * @param client see {@link clientOf}.
   * @throws {HttpError} 429
   */
  serve(client: string, work: () => Promise<void>): Promise<void>
}

/**
 * Limits the concurrent requests of each client to a store: of each user, of each network while there is no user yet, and of each Stack
 * whose token was sent. Further ones wait, and are served round-robin between clients.
 */
export class RequestLimiter {
  readonly #authorizations: ClientLimiter
  readonly #services: ClientLimiter

  constructor({ authorization = authorizationLimits, service = serviceLimits } = {}) {
    this.#authorizations = new ClientLimiter(authorization)
    this.#services = new ClientLimiter(service)
  }

  /** Call it when a request arrives. */
  begin(request: IncomingMessage, response: ServerResponse): LimitedRequest {
    let isClosed = false
    const closed = new Promise<void>(resolve => {
      response.once('close', () => {
        isClosed = true
        resolve()
      })
    })
    return {
      authorize: async (user, decide) => {
        const client = user ? `user ${user.name}` : `network ${networkOf(request.socket.remoteAddress)}`
        return await this.#authorizations.run(client, decide).catch(toHttpError)
      },
      serve: async (client, work) => {
        const service = async () => {
          // The client may have left while its request waited.
          if (isClosed) return
          await work()
          if (response.writableEnded) await closed
        }
        await this.#services.run(client, service).catch(toHttpError)
      },
    }
  }
}

/** The client that is counted: a user, or the Stack whose token was sent. */
export const clientOf = (user: HttpUser | undefined, stackUid: string): string => (user ? `user ${user.name}` : `stack ${stackUid}`)

function toHttpError(error: unknown): never {
  if (error instanceof LimitExceededError) throw new HttpError(429, 'TooManyRequests', error.message)
  throw error
}
