import { signal } from '@preact/signals'
import { type Session, type SignIn, type SignInOptions, type SignInProblem, type SignOut, signInProblems } from '../protocol/index.ts'
import { RequestError, request, setCsrfToken, whenSignedOut } from './request.ts'

export type SessionState =
  | { readonly kind: 'loading' }
  /** The server did not answer. */
  | { readonly kind: 'unavailable'; readonly message: string }
  | { readonly kind: 'signed-out'; readonly options: SignInOptions; readonly message?: string; readonly provider?: SignOut['provider'] }
  | { readonly kind: 'signed-in'; readonly session: Session }

export const sessionState = signal<SessionState>({ kind: 'loading' })
const anyMethod: SignInOptions = { methods: ['token'] }
whenSignedOut(options => {
  const { value } = sessionState
  signedOut(options, value.kind === 'signed-out' ? value.message : value.kind === 'signed-in' ? 'the session has ended' : undefined)
})

/** Of the user who is signed in. Only the shell and what it contains may call it: it is shown with a session only. */
export function currentSession(): Session {
  const state = sessionState.value
  if (state.kind !== 'signed-in') throw new Error('no session')
  return state.session
}

/** Signs in with the one-time link in the address, if there is one, and reads the session otherwise. */
export async function startSession(): Promise<void> {
  const { token: link, problem } = takeFragment()
  try {
    if (problem !== undefined) signedOut(anyMethod, problemTexts[problem])
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
  const { csrfToken } = currentSession()
  const { provider } = await request<SignOut>('DELETE', 'session').catch((): SignOut => ({}))
  const now = sessionState.value
  // The stream has reported the end before, and the user has signed in again: the answer is about an earlier session.
  if (now.kind === 'signed-in' && now.session.csrfToken !== csrfToken) return
  signedOut()
  if (provider && sessionState.value.kind === 'signed-out') sessionState.value = { ...sessionState.value, provider }
}

export function signedOut(options?: SignInOptions, message?: string): void {
  const before = sessionState.value
  // The stream reports the end of the session too, before or after the answer to the sign-out.
  const provider = before.kind === 'signed-out' ? before.provider : undefined
  sessionState.value = {
    ...{ kind: 'signed-out', options: options ?? anyMethod },
    ...(message !== undefined && { message }),
    ...(provider && { provider }),
  }
  // The answer has the ways to sign in.
  if (!options) request('GET', 'session').catch(() => {})
}

function accept(session: Session): void {
  setCsrfToken(session.csrfToken)
  sessionState.value = { kind: 'signed-in', session }
}

/** A link that is opened while the page is open changes only the part of the address after the `#`. */
export function watchLinks(): void {
  window.addEventListener('hashchange', () => {
    if (/[#&](token|problem)=/.test(location.hash)) void startSession()
  })
}

/** The token leaves the address and the history before it is sent, so that neither keeps it. */
function takeFragment(): { token: string | undefined; problem: SignInProblem | undefined } {
  const values = new URLSearchParams(location.hash.slice(1))
  const token = values.get('token') ?? undefined
  const problem = signInProblems.find(each => each === values.get('problem'))
  if (token !== undefined || problem !== undefined) history.replaceState(null, '', location.pathname + location.search)
  return { token, problem }
}

const problemTexts: Readonly<Record<SignInProblem, string>> = {
  unavailable: 'the provider cannot be reached: see the log of the console',
  expired: 'the sign-in was not begun in this browser, or took longer than 10 minutes: try again',
  denied: 'the provider has not signed you in',
  rejected: 'the answer of the provider was rejected: see the log of the console',
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
