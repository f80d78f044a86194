export type SignInMethod = 'link' | 'token' | 'oidc'

/** Who uses the page. */
export type Session = {
  readonly user: string
  readonly groups: readonly string[]
  readonly method: SignInMethod
  /** Sent with every request, in the header `x-oarlock-csrf`. */
  readonly csrfToken: string
  readonly readOnly: boolean
  /** After so long without a click or a key the session ends. */
  readonly idleTimeoutMs: number
  readonly expiresAtMs: number
  /** A path that a browser opens to sign in again, in another tab. Undefined: with a token or a link. */
  readonly signInAgain?: string
  /** When the user was authenticated last: destructive actions want it to be recent. 0: not known. */
  readonly authenticatedAtMs: number
  /** What is configured: others are not shown. */
  readonly features: readonly ('tenants' | 'partitions' | 'controllers')[]
  readonly version: string
}

/** The user has signed out of the console. `provider`: where the user is still signed in, and the address that a browser opens to end that session too. */
export type SignOut = { readonly provider?: { readonly name: string; readonly endSession: string } }

/** Destructive actions want a sign-in that is no older. */
export const recentSignInMs = 5 * 60_000
/** Reason of the answer (status 401) to an action that wants a more recent sign-in: the session continues. */
export const signInTooOld = 'SignInTooOld'

/** Why a sign-in with the OIDC provider failed, behind `#problem=` of the page's address; the log of the console has the error. */
export const signInProblems = ['unavailable', 'expired', 'denied', 'rejected'] as const
export type SignInProblem = (typeof signInProblems)[number]
