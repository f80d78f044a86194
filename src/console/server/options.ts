import type { Client } from '../../kubernetes/client/index.ts'
import type { History, Projections } from '../projection/index.ts'
import type { NeededRight } from './available-actions.ts'
import type { ReachedBy } from './cookies.ts'
import type { OidcProvider } from './oidc-provider.ts'
import type { OneTimeLinks } from './one-time-links.ts'
import type { ConsoleUser, Credential, SessionLimits } from './sessions.ts'
import type { IsAllowed } from './visibility.ts'

export type ConsoleServerOptions = {
  /** Read when a session begins, not before. */
  readonly projections: Projections
  readonly history: History
  /** Where `scripts/build-console.mjs` has built the page. */
  readonly assetsDirectory: string
  readonly links: OneTimeLinks
  /** `POST links` issues links for this user to who has the bearer token: `oarlock console`. Default: to no one. */
  readonly administrator?: { readonly user: ConsoleUser; readonly linkToken: string } | undefined
  /** Default: users sign in with links and tokens only. */
  readonly oidc?: OidcProvider | undefined
  /** The user of a bearer token; undefined if it is not valid. @throws if the API server does not decide. */
  authenticateToken(token: string, remoteAddress: string | undefined): Promise<ConsoleUser | undefined>
  /** A client of the API server and the stores with exactly the rights of the user. */
  connect(user: ConsoleUser, credential: Credential): Promise<Client>
  readonly isAllowed: IsAllowed &
    ((user: ConsoleUser, right: NeededRight & { group: string; namespace?: string; name?: string }) => Promise<boolean>)
  /** How a browser has reached the console, by the `Host` header; undefined for a name that is not ours (DNS rebinding). */
  reachedBy(host: string | undefined): ReachedBy | undefined
  /** Default false. */
  readonly readOnly?: boolean
  readonly limits?: Partial<SessionLimits>
  /** Default {@link deltaIntervalMs}. A bench replays an hour faster. */
  readonly flushIntervalMs?: number
  readonly version: string
  onError(error: unknown): void
}
