import type { Transferable } from 'node:worker_threads'

/** A request and its response carry the same number; the two directions of a port are numbered independently. */
export type RequestMessage<Request> = { readonly requestId: number; readonly body: Request }
export type ResponseMessage<Response> = { readonly responseTo: number; readonly body: Response }

/** A `Worker`, a `MessagePort`, or `parentPort`. */
export type MessageEndpoint = {
  postMessage(message: unknown, transfer?: readonly Transferable[]): void
  on(event: 'message', listener: (message: unknown) => void): unknown
}

/** The requesting end of a port: numbers the requests and matches the responses. */
export class ThreadRequests<Request, Response> {
  readonly #endpoint: MessageEndpoint
  readonly #pending = new Map<number, { resolve(response: Response): void; reject(error: Error): void }>()
  #lastId = 0
  #failure: Error | undefined

  constructor(endpoint: MessageEndpoint) {
    this.#endpoint = endpoint
    endpoint.on('message', message => {
      const { responseTo, body } = message as ResponseMessage<Response>
      if (responseTo === undefined) return
      this.#pending.get(responseTo)?.resolve(body)
      this.#pending.delete(responseTo)
    })
  }

  /** How many requests have no response yet. */
  get pending(): number {
    return this.#pending.size
  }

  /** `transfer`: buffers that move to the other thread and can no longer be used here. */
  send(body: Request, transfer: readonly ArrayBuffer[] = []): Promise<Response> {
    if (this.#failure) return Promise.reject(this.#failure)
    const requestId = ++this.#lastId
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    this.#pending.set(requestId, { resolve, reject })
    this.#endpoint.postMessage({ requestId, body } satisfies RequestMessage<Request>, transfer)
    return promise
  }

  /** Rejects every pending and every later request with `error`. */
  fail(error: Error): void {
    this.#failure ??= error
    for (const { reject } of this.#pending.values()) reject(this.#failure)
    this.#pending.clear()
  }
}

/** The responding end of a port. Responses may overtake each other where `respond` is asynchronous. */
export function respondToRequests<Request, Response>(
  endpoint: MessageEndpoint,
  respond: (request: Request) => Response | Promise<Response>,
): void {
  endpoint.on('message', async message => {
    const { requestId, body } = message as RequestMessage<Request>
    if (requestId === undefined) return
    endpoint.postMessage({ responseTo: requestId, body: await respond(body) } satisfies ResponseMessage<Response>)
  })
}
