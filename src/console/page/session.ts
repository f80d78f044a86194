import { signal } from '@preact/signals'
import type { Session, SignIn, SignInOptions } from '../protocol/index.ts'
import { RequestError, request, setCsrfToken, whenSignedOut } from './request.ts'

export type SessionState =
  | { readonly kind: 'loading' }
  /** The server did not answer. */
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'signed-out'; readonly options: SignInOptions; readonly message?: string }
  | { readonly kind: 'signed-in'; readonly session: Session }

export const sessionState = signal<SessionState>({ kind: 'loading' })
const anyMethod: SignInOptions = { methods: ['token'] }
whenSignedOut(options => signedOut(options, sessionState.value.kind === 'signed-in' ? 'the session has ended' : undefined))

/** Of the user who is signed in. Only the shell and what it contains may call it: it is shown with a session only. */
export function currentSession(): Session {
  const state = sessionState.value
  if (state.kind !== 'signed-in') throw new Error('no session')
  return state.session
}

/** Signs in with the one-time link in the address, if there is one, and reads the session otherwise. */
export async function startSession(): Promise<void> {
  const link = takeLink()
  try {
    if (link === undefined) accept(await request<Session>('GET', 'session'))
    else
      await signIn({ link }).catch(async error => {
        // A link that was used before is no reason to end the session that it made.
        accept(await request<Session>('GET', 'session'))
        console.warn(error)
      })
  } catch (error) {
    if (sessionState.value.kind === 'loading') sessionState.value = { kind: 'unavailable', message: (error as Error).message }
  }
}

/** @throws {RequestError} if it is rejected. */
export async function signIn(credential: SignIn): Promise<void> {
  try {
    accept(await request<Session>('POST', 'session', credential))
  } catch (error) {
    if (error instanceof RequestError && error.signIn) signedOut(error.signIn, error.message)
    throw error
  }
}

/** For an action that asks for a recent sign-in. @throws {RequestError} */
export async function signInAgain(token: string): Promise<void> {
  accept(await request<Session>('POST', 'session', { token } satisfies SignIn))
}

export async function signOut(): Promise<void> {
  await request('DELETE', 'session').catch(() => {})
  signedOut(anyMethod)
}

export function signedOut(options: SignInOptions = anyMethod, message?: string): void {
  sessionState.value = { kind: 'signed-out', options, ...(message !== undefined && { message }) }
}

function accept(session: Session): void {
  setCsrfToken(session.csrfToken)
  sessionState.value = { kind: 'signed-in', session }
}

/** A link that is opened while the page is open changes only the part of the address after the `#`. */
export function watchLinks(): void {
  window.addEventListener('hashchange', () => {
    if (location.hash.includes('token=')) void startSession()
  })
}

/** The token leaves the address and the history before it is sent, so that neither keeps it. */
function takeLink(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get('token')
  if (token === null) return undefined
  history.replaceState(null, '', location.pathname + location.search)
  return token
}

const activeEveryMs = 60_000

/** Reports that the user is active, at most once a minute, so that the session does not end while the page is used. */
export function reportActivity(): () => void {
  let lastMs = performance.now()
  const report = () => {
    if (performance.now() - lastMs < activeEveryMs) return
    lastMs = performance.now()
    request('POST', 'active').catch(() => {})
  }
  for (const type of ['pointerdown', 'keydown']) document.addEventListener(type, report, { passive: true })
  return () => {
    for (const type of ['pointerdown', 'keydown']) document.removeEventListener(type, report)
  }
}
