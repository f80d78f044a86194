import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ReviewedUser } from './delegated-auth/review-resources.ts'

/** Serves a request that its listener has authenticated; undefined is a request without a valid credential. Authorizes it itself. */
export type MountHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  context: {
    user: ReviewedUser | undefined
    /** For long responses: the user of the same credential now; undefined if it is no longer valid. */
    reauthenticate?(): Promise<ReviewedUser | undefined>
    /** Records the request in the audit log, if the listener has one, as that of a user whom the handler has authenticated itself. */
    audit?(user: ReviewedUser): void
  },
) => Promise<void>

/** The handler of all paths that start with `prefix`, on any listener of a role. */
export type Mount = { prefix: string; handler: MountHandler }
