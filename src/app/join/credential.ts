import type { JoinResponse } from './join-service.ts'

/** The share of its lifetime after which a credential is renewed. */
const renewAfter = 1 / 3
/** A failed renewal is retried after this time, or a tenth of the lifetime if that is shorter. */
const maxRetryMs = 30_000

export type CredentialOptions = {
  server: string
  caCertificate: string | undefined
  /** From the response to the join request, or from the environment of a worker that this host started. */
  response: Pick<JoinResponse, 'credential' | 'ttlMs'>
  onError(error: Error): void
}

/** A worker's credential, which is renewed before it expires until `stop` is called. */
export class Credential {
  readonly #options: CredentialOptions
  #current: string
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(options: CredentialOptions) {
    this.#options = options
    this.#current = options.response.credential
    this.#schedule(options.response.ttlMs * renewAfter)
  }

  readonly get = (): string => this.#current

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => void this.#renew(), Math.min(inMs, 2 ** 31 - 1)).unref()
  }

  async #renew(): Promise<void> {
    const { server, caCertificate, response, onError } = this.#options
    // Loaded only here: a worker that `oarlock up` starts has a credential, and its first Run must not wait for the module.
    const { JoinError, renewCredential } = await import('./bootstrap.ts')
    try {
      const { credential, ttlMs } = await renewCredential(server, caCertificate, this.#current)
      this.#current = credential
      if (!this.#isStopped) this.#schedule(ttlMs * renewAfter)
    } catch (error) {
      onError(error as Error)
      // Rejected means revoked: the worker cannot renew its Lease either, and stops because of that (invariant 2).
      if (!this.#isStopped && !(error instanceof JoinError && error.isRejected)) this.#schedule(Math.min(maxRetryMs, response.ttlMs / 10))
    }
  }
}
