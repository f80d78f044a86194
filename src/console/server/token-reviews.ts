import type { ConsoleServerOptions } from './options.ts'
import type { SessionRecord, Sessions } from './sessions.ts'

/** A token that has expired or was revoked ends its session after so long at the latest, and the time between two calls. */
const reviewEveryMs = 30_000

/** Ends sessions whose bearer token is no longer valid: what its user may list would be shown for as long as the session lasts. */
export class TokenReviews {
  readonly #sessions: Sessions
  readonly #authenticate: ConsoleServerOptions['authenticateToken']
  readonly #nowMs: () => number
  readonly #reviewedMs = new WeakMap<SessionRecord, number>()

  /** @param nowMs a monotonic clock in milliseconds. */
  constructor(sessions: Sessions, authenticate: ConsoleServerOptions['authenticateToken'], nowMs = () => performance.now()) {
    this.#sessions = sessions
    this.#authenticate = authenticate
    this.#nowMs = nowMs
  }

  /** Reviews the tokens whose last review is too long ago. An API server that does not decide ends no session. */
  review(): void {
    const nowMs = this.#nowMs()
    for (const session of this.#sessions.values()) {
      const { credential, user } = session
      if (credential.kind !== 'token') continue
      const lastMs = this.#reviewedMs.get(session)
      if (lastMs !== undefined && nowMs - lastMs < reviewEveryMs) continue
      this.#reviewedMs.set(session, nowMs)
      this.#authenticate(credential.token, user.name).then(
        reviewed => {
          // Signed in again with another one meanwhile?
          if (reviewed?.name !== user.name && session.credential === credential) this.#sessions.end(session, 'the token is no longer valid')
        },
        () => this.#reviewedMs.delete(session),
      )
    }
  }
}
