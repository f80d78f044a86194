import type { ClientRequest } from './client-request.ts'
import type { GatewayUser } from './user-headers.ts'

/** Between two checks of the credential of an open watch, and of an open log or stream, which gives more to its holder. */
export const watchCheckEveryMs = 60_000
export const streamCheckEveryMs = 10_000

export type EndWithCredentialOptions = {
  readonly request: ClientRequest
  /** Who sent it. */
  readonly user: GatewayUser
  authenticate(request: ClientRequest): Promise<GatewayUser | undefined>
  readonly everyMs: number
  /** Ends what the request has opened. */
  end(): void
  /** Called when the credential cannot be checked; what is open stays. */
  onError(error: unknown): void
}

/** Ends what a request has opened when its credential is no longer valid, which only the gateway knows. The returned function must be called at its end. */
export function endWithCredential({ request, user, authenticate, everyMs, end, onError }: EndWithCredentialOptions): () => void {
  const timer = setInterval(() => {
    authenticate(request).then(now => {
      if (!isSameUser(now, user)) end()
    }, onError)
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

/** A ServiceAccount that was created again has the same name. */
export const isSameUser = (now: GatewayUser | undefined, { name, uid }: GatewayUser): boolean =>
  now !== undefined && now.name === name && now.uid === uid
