import { hash, randomBytes } from 'node:crypto'
import type { SignInMethod } from '../protocol/index.ts'

export type ConsoleUser = {
  readonly name: string
  readonly groups: readonly string[]
  readonly uid?: string
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** What the requests of a session are sent with. Local: the process may act for its users itself. */
export type Credential = { readonly kind: 'local' } | { readonly kind: 'token'; readonly token: string }

/** Of a user who has signed in. */
export type NewSession = {
  readonly user: ConsoleUser
  /** Replaced when the user signs in again. */
  credential: Credential
  readonly method: SignInMethod
  /** Of a user of the OIDC provider: it names the session that a sign-out ends there. */
  idToken?: string | undefined
  /** When the user was last authenticated, for actions that want it to be recent. 0: not known. */
  authenticatedMs: number
}

export type SessionRecord = NewSession & {
  /** Never leaves the process: the cookie has a secret whose hash is this. */
  readonly id: string
  readonly csrfToken: string
  readonly createdMs: number
  /** When the user last clicked or typed. */
  activeMs: number
}

export type SessionLimits = {
  /** Default 1 hour. */
  readonly idleTimeoutMs: number
  /** Default 12 hours. */
  readonly maxAgeMs: number
  /** The session that was idle for longest ends when there are more (invariant 10). Default 1,000. */
  readonly maxSessions: number
  /** So that no user ends the sessions of others. Default 50. */
  readonly maxSessionsPerUser: number
}

export const defaultSessionLimits: SessionLimits = {
  idleTimeoutMs: 60 * 60_000,
  maxAgeMs: 12 * 60 * 60_000,
  maxSessions: 1_000,
  maxSessionsPerUser: 50,
}

/** Who is signed in. Sessions are in memory: after a restart users sign in again. */
export class Sessions {
  readonly #sessions = new Map<string, SessionRecord>()
  readonly #limits: SessionLimits
  readonly #ended: (session: SessionRecord, reason: string) => void
  readonly #nowMs: () => number

  /** @param nowMs milliseconds since the epoch. `ended` is called for each session that ends. */
  constructor(limits: SessionLimits, ended: (session: SessionRecord, reason: string) => void, nowMs: () => number = Date.now) {
    this.#limits = limits
    this.#ended = ended
    this.#nowMs = nowMs
  }

  get limits(): SessionLimits {
    return this.#limits
  }

  /** Returns the secret for the cookie. */
  create({ user, credential, method, authenticatedMs, idToken }: NewSession): { readonly secret: string; readonly session: SessionRecord } {
    const nowMs = this.#nowMs()
    const secret = randomBytes(32).toString('base64url')
    const session: SessionRecord = {
      ...{ id: hash('sha256', secret), user, credential, method, csrfToken: randomBytes(24).toString('base64url') },
      ...{ createdMs: nowMs, activeMs: nowMs, authenticatedMs, idToken },
    }
    const own = [...this.#sessions.values()].filter(other => other.user.name === user.name)
    if (own.length >= this.#limits.maxSessionsPerUser) this.#endIdlest(own)
    this.#sessions.set(session.id, session)
    if (this.#sessions.size > this.#limits.maxSessions) this.#endIdlest([...this.#sessions.values()])
    return { secret, session }
  }

  values(): SessionRecord[] {
    return [...this.#sessions.values()]
  }

  #endIdlest(sessions: readonly SessionRecord[]): void {
    this.end(
      sessions.reduce((a, b) => (b.activeMs < a.activeMs ? b : a)),
      'too many sessions are open',
    )
  }

  find(secret: string | undefined): SessionRecord | undefined {
    if (secret === undefined) return undefined
    const session = this.#sessions.get(hash('sha256', secret))
    if (!session) return undefined
    const reason = this.#endReason(session)
    if (reason === undefined) return session
    this.end(session, reason)
    return undefined
  }

  end(session: SessionRecord, reason: string): void {
    if (this.#sessions.delete(session.id)) this.#ended(session, reason)
  }

  /** Ends sessions that were idle for too long or are too old. */
  sweep(): void {
    for (const session of this.#sessions.values()) {
      const reason = this.#endReason(session)
      if (reason !== undefined) this.end(session, reason)
    }
  }

  close(): void {
    for (const session of [...this.#sessions.values()]) this.end(session, 'the server is shutting down')
  }

  #endReason({ activeMs, createdMs }: SessionRecord): string | undefined {
    const nowMs = this.#nowMs()
    if (nowMs - createdMs >= this.#limits.maxAgeMs) return 'the session has reached its maximum age'
    return nowMs - activeMs >= this.#limits.idleTimeoutMs ? 'the session was idle for too long' : undefined
  }
}
