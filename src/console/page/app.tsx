import { Notice } from './parts/notice.tsx'
import { sessionState, startSession } from './session.ts'
import { Shell } from './shell/shell.tsx'
import { SignInPage } from './shell/sign-in-page.tsx'

/** The page for the state of the session. */
export function App() {
  const state = sessionState.value
  switch (state.kind) {
    case 'loading':
      return <div class="loading whole" aria-busy="true" />
    case 'unavailable':
      return (
        <main class="centered">
          <Notice isError title="The console cannot be reached">
            <p>{state.message}</p>
            <button type="button" class="primary" onClick={() => void startSession()}>
              Try again
            </button>
          </Notice>
        </main>
      )
    case 'signed-out':
      return <SignInPage options={state.options} message={state.message} provider={state.provider} />
    case 'signed-in':
      return <Shell key={state.session.user} />
  }
}
