import { JoinError, renewCredential } from './bootstrap.ts'
import type { JoinResponse } from './join-service.ts'

/** The share of its lifetime after which a credential is renewed. */
const renewAfter = 1 / 3
/** A failed renewal is retried after this time, or a tenth of the lifetime if that is shorter. */
const maxRetryMs = 30_000

export type CredentialOptions = {
  server: string
  caCertificate: string
  /** The response to the join request. */
  response: JoinResponse
  onError(error: Error): void
}

/** A worker's credential, which is renewed before it expires until `stop` is called. */
export class Credential {
  readonly #options: CredentialOptions
  #current: string
  #timer: NodeJS.Timeout | undefined

  constructor(options: CredentialOptions) {
    this.#options = options
    this.#current = options.response.credential
    this.#schedule(options.response.ttlMs * renewAfter)
  }

  readonly get = (): string => this.#current

  stop(): void {
    clearTimeout(this.#timer)
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => void this.#renew(), Math.min(inMs, 2 ** 31 - 1)).unref()
  }

  async #renew(): Promise<void> {
    const { server, caCertificate, response, onError } = this.#options
    try {
      const { credential, ttlMs } = await renewCredential(server, caCertificate, this.#current)
      this.#current = credential
      this.#schedule(ttlMs * renewAfter)
    } catch (error) {
      onError(error as Error)
      // Rejected means revoked: the worker cannot renew its Lease either, and stops because of that (invariant 2).
      if (!(error instanceof JoinError && error.isRejected)) this.#schedule(Math.min(maxRetryMs, response.ttlMs / 10))
    }
  }
}
