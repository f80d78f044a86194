import { allowedSubjectName, isSubjectName } from '../../kubernetes/client/index.ts'
import type { ConsoleUser } from './sessions.ts'

/** How a user and groups of the API server follow from the claims of an ID token: as with the flags `--oidc-…` of kube-apiserver. */
export type OidcClaims = {
  /** Default `sub`. */
  readonly usernameClaim?: string | undefined
  /** Default: none for `email`, and `ISSUER#` for other claims. `-`: none. */
  readonly usernamePrefix?: string | undefined
  /** Default: users have no groups. */
  readonly groupsClaim?: string | undefined
  /** Default: none. */
  readonly groupsPrefix?: string | undefined
  /** Groups with their prefix that users can have: others are left out. Default: all. */
  readonly allowedGroups?: readonly string[] | undefined
}

/** Kubernetes' own users and groups, such as `system:masters`: no provider may give them. */
const reservedPrefix = 'system:'

/** @throws {TypeError} with the claim that is missing or not allowed, without its value. */
export function oidcUser(issuer: string, claims: Readonly<Record<string, unknown>>, options: OidcClaims): ConsoleUser {
  const { usernameClaim = 'sub', groupsClaim, groupsPrefix = '', allowedGroups } = options
  const value = claims[usernameClaim]
  if (typeof value !== 'string' || value === '') throw new TypeError(`the ID token has no claim ${usernameClaim}`)
  // As kube-apiserver: a claim that says false rejects, a missing one does not.
  if (usernameClaim === 'email' && 'email_verified' in claims && claims.email_verified !== true)
    throw new TypeError('the claim email is not verified')
  const { usernamePrefix = usernameClaim === 'email' ? '-' : `${issuer}#` } = options
  const name = `${usernamePrefix === '-' ? '' : usernamePrefix}${value}`
  if (name.startsWith(reservedPrefix)) throw new TypeError(`the claim ${usernameClaim} begins with "${reservedPrefix}"`)
  if (!isSubjectName(name)) throw new TypeError(`the claim ${usernameClaim} is not ${allowedSubjectName}`)
  const groups = groupsClaim === undefined ? [] : textsOf(claims[groupsClaim]).map(group => `${groupsPrefix}${group}`)
  const isAllowed = (group: string) => isSubjectName(group) && !group.startsWith(reservedPrefix) && (allowedGroups?.includes(group) ?? true)
  return { name, groups: groups.filter(isAllowed) }
}

function textsOf(claim: unknown): string[] {
  if (typeof claim === 'string') return [claim]
  return Array.isArray(claim) ? claim.filter(each => typeof each === 'string') : []
}
