import { useEffect, useState } from 'preact/hooks'
import { currentSession, signInAgain } from '../session.ts'
import { watchSignIn } from '../stream/tab.ts'
import { Command, DataHint } from './command.tsx'

/**
 * For an action that wants a sign-in of the last minutes. `onSignedIn` continues with what the user has confirmed here; `onSignedInElsewhere`, after a
 * sign-in in another tab, asks for the confirmation again.
 */
export function SignInAgain({
  message,
  onSignedIn,
  onSignedInElsewhere,
}: {
  readonly message: string
  readonly onSignedIn: () => void
  readonly onSignedInElsewhere: () => void
}) {
  const [problem, setProblem] = useState('')
  const { method, signInAgain: path } = currentSession()
  useEffect(() => watchSignIn(onSignedInElsewhere), [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (method === 'oidc') return void window.open(path, '_blank')
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get('token')).trim()
    try {
      await signInAgain(token)
      onSignedIn()
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <form onSubmit={event => void submit(event)}>
      <p>{message}</p>
      {method === 'token' && (
        <label class="field">
          <span>Token</span>
          <input name="token" type="password" autoComplete="off" required />
        </label>
      )}
      <p class="problem" aria-live="polite">
        {problem}
      </p>
      {method === 'link' ? (
        <>
          <p class="hint">Open the link that this command prints, in this browser. This page continues by itself.</p>
          <Command text="oarlock console" />
          <DataHint />
        </>
      ) : (
        <footer>
          <button type="submit" class="primary">
            Sign in again
          </button>
        </footer>
      )}
    </form>
  )
}
