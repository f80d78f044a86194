import type { TokenAuthenticator } from '../delegated-auth/authenticate-by-token-review.ts'
import { rememberReviews } from '../delegated-auth/remembered-reviews.ts'

/**
 * Reviews tokens at a partition whose address changes: what is remembered for outages stays, and a review that fails because the connections to the former
 * address are closed is sent again to the new one.
 */
export class MovingReview {
  readonly review: TokenAuthenticator
  #current: TokenAuthenticator

  constructor(first: TokenAuthenticator) {
    this.#current = first
    this.review = rememberReviews((token, remoteAddress) => this.#send(token, remoteAddress))
  }

  /** Call it before the connections to the former address are closed. */
  move(to: TokenAuthenticator): void {
    this.#current = to
  }

  async #send(token: string, remoteAddress: string | undefined): ReturnType<TokenAuthenticator> {
    for (;;) {
      const asked = this.#current
      try {
        return await asked(token, remoteAddress)
      } catch (error) {
        if (asked === this.#current) throw error
      }
    }
  }
}
