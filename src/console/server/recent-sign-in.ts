import { StatusError } from '../../kubernetes/object/index.ts'
import { recentSignInMs, signInTooOld } from '../protocol/index.ts'
import type { SessionRecord } from './sessions.ts'

/** For what cannot be undone. @throws {StatusError} if the user has to sign in again first. */
export function requireRecentSignIn({ authenticatedMs }: SessionRecord, action: string): void {
  if (Date.now() - authenticatedMs <= recentSignInMs) return
  throw new StatusError(signInTooOld, `sign in again: "${action}" needs a sign-in of the last ${recentSignInMs / 60_000} minutes`, {
    code: 401,
  })
}
