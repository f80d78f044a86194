import type { OidcOptions } from '../../console/index.ts'

/** What an administrator chooses. */
export type ConsoleSettings = {
  /** Names under which browsers reach the console, with TLS, besides loopback names. */
  readonly hosts?: readonly string[] | undefined
  /** Default false. */
  readonly readOnly?: boolean | undefined
  /** Default: users sign in with links and tokens only. */
  readonly oidc?: OidcOptions | undefined
}
