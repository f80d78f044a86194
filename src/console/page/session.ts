import { signal } from '@preact/signals'
import type { Session, SignIn, SignInOptions } from '../protocol/index.ts'
import { credentials, RequestError, request } from './request.ts'

export type SessionState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'signed-in'; readonly session: Session }
  | { readonly kind: 'signed-out'; readonly options: SignInOptions; readonly message?: string }
  | { readonly kind: 'unreachable'; readonly message: string }

export const sessionState = signal<SessionState>({ kind: 'loading' })
export const currentSession = (): Session | undefined => (sessionState.value.kind === 'signed-in' ? sessionState.value.session : undefined)

/** A user who works is reported to the server at most so often. */
const activeIntervalMs = 60_000
const defaultOptions: SignInOptions = { methods: ['token'] }

/** Reads the session again. A `message` is shown if there is none. */
export async function loadSession(message?: string): Promise<void> {
  try {
    signedIn(await request<Session>('GET', 'session'))
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    if (error.code !== 401) sessionState.value = { kind: 'unreachable', message: error.message }
    else signedOut((error.body as Partial<SignInOptions> | undefined)?.methods ? (error.body as SignInOptions) : defaultOptions, message)
  }
}

/** Exchanges a link that `oarlock up` or `oarlock console` printed. */
export async function signInWithLink(link: string): Promise<void> {
  try {
    signedIn(await request<Session>('POST', 'session', { link } satisfies SignIn))
  } catch (error) {
    await loadSession(`This link does not work: ${(error as Error).message}. A link works once; "oarlock console" prints a new one.`)
  }
}

/** @throws {RequestError} if the token is not accepted. */
export async function signInWithToken(token: string): Promise<void> {
  signedIn(await request<Session>('POST', 'session', { token } satisfies SignIn))
}

export async function signOut(): Promise<void> {
  await request('DELETE', 'session').catch(() => undefined)
  await loadSession()
}

function signedIn(session: Session): void {
  credentials.csrfToken = session.csrfToken
  sessionState.value = { kind: 'signed-in', session }
}

function signedOut(options: SignInOptions, message?: string): void {
  credentials.csrfToken = ''
  sessionState.value = { kind: 'signed-out', options, message }
}

credentials.onSignedOut = error => {
  if (sessionState.value.kind === 'signed-in') void loadSession(`You were signed out: ${error.message}.`)
}

let reportedMs = Date.now()
function reportActive(): void {
  if (sessionState.value.kind !== 'signed-in' || Date.now() - reportedMs < activeIntervalMs) return
  reportedMs = Date.now()
  request('POST', 'active').catch(() => undefined)
}
for (const event of ['pointerdown', 'keydown']) addEventListener(event, reportActive, { passive: true })
