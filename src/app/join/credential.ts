import { JoinError, renewCredential } from './bootstrap.ts'
import type { JoinResponse } from './join-service.ts'

/** After a third of its life a credential is renewed; when that fails, again after this. */
const renewAfter = 1 / 3
const retryMs = 30_000

export type CredentialOptions = {
  server: string
  caCertificate: string
  admission: JoinResponse
  onError(error: Error): void
}

/** A worker's credential, renewed in time for as long as the worker lives. */
export class Credential {
  readonly #options: CredentialOptions
  #present: string
  #timer: NodeJS.Timeout | undefined

  constructor(options: CredentialOptions) {
    this.#options = options
    this.#present = options.admission.credential
    this.#schedule(options.admission.ttlMs * renewAfter)
  }

  readonly get = (): string => this.#present

  stop(): void {
    clearTimeout(this.#timer)
  }

  #schedule(inMs: number): void {
    this.#timer = setTimeout(() => void this.#renew(), Math.min(inMs, 2 ** 31 - 1)).unref()
  }

  async #renew(): Promise<void> {
    const { server, caCertificate, admission, onError } = this.#options
    try {
      const { credential, ttlMs } = await renewCredential(server, caCertificate, this.#present)
      this.#present = credential
      this.#schedule(ttlMs * renewAfter)
    } catch (error) {
      onError(error as Error)
      // Refused means revoked: its Lease cannot be renewed either, and the worker ends by that (invariant 2).
      if (!(error instanceof JoinError && error.isRefused)) this.#schedule(Math.min(retryMs, admission.ttlMs / 10))
    }
  }
}
