import type { Client } from '../../kubernetes/client/index.ts'
import type { History, Projections } from '../projection/index.ts'
import type { NeededRight } from './available-actions.ts'
import type { OneTimeLinks } from './one-time-links.ts'
import type { ConsoleUser, Credential, SessionLimits } from './sessions.ts'
import type { IsAllowed } from './visibility.ts'

export type ConsoleServerOptions = {
  readonly projections: Projections
  readonly history: History
  /** Where `scripts/build-console.mjs` has built the page. */
  readonly assetsDirectory: string
  readonly links: OneTimeLinks
  /** Bearer token of `POST links`, by which `oarlock console` gets a link for `linkUser`. */
  readonly linkToken: string
  readonly linkUser: ConsoleUser
  /** The user of a bearer token; undefined if it is not valid. @throws if the API server does not decide. */
  authenticateToken(token: string, remoteAddress: string | undefined): Promise<ConsoleUser | undefined>
  /** A client of the API server and the stores with exactly the rights of the user. */
  connect(user: ConsoleUser, credential: Credential): Promise<Client>
  readonly isAllowed: IsAllowed &
    ((user: ConsoleUser, right: NeededRight & { group: string; namespace?: string; name?: string }) => Promise<boolean>)
  /** Whether the request came over TLS, as far as browsers know. */
  readonly secure: boolean
  /** Default false. */
  readonly readOnly?: boolean
  readonly limits?: Partial<SessionLimits>
  readonly version: string
  onError(error: unknown): void
}
