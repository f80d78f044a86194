import { useEffect, useState } from 'preact/hooks'
import type { SignInOptions, SignOut } from '../../protocol/index.ts'
import { Command, DataHint } from '../parts/command.tsx'
import { signIn, startSession } from '../session.ts'
import { watchSignIn } from '../stream/tab.ts'

export function SignInPage({
  options,
  message,
  provider,
}: {
  readonly options: SignInOptions
  readonly message: string | undefined
  /** Where a user who has signed out of the console is still signed in. */
  readonly provider: SignOut['provider']
}) {
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    document.title = 'Sign in · Oarlock'
    // The session is one for all tabs of the browser.
    return watchSignIn(() => void startSession())
  }, [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    const token = String(new FormData(event.currentTarget as HTMLFormElement).get('token')).trim()
    if (token === '') return
    setBusy(true)
    try {
      await signIn({ token })
    } catch (error) {
      setProblem((error as Error).message)
      setBusy(false)
    }
  }
  return (
    <main class="centered sign-in">
      <h1>Oarlock</h1>
      <p class="problem" role="alert">
        {problem ?? message ?? ''}
      </p>
      {provider && (
        <p>
          You have signed out of the console, and are still signed in to {provider.name}.{' '}
          <a href={provider.endSession} target="_self" rel="noreferrer">
            Sign out of {provider.name}
          </a>
        </p>
      )}
      {options.oidc && (
        <a class="button primary" href={options.oidc.signIn} target="_self">
          Sign in with {options.oidc.name}
        </a>
      )}
      <form onSubmit={event => void submit(event)}>
        <label class="field">
          <span>Bearer token</span>
          <input name="token" type="password" autoComplete="off" required />
        </label>
        <button type="submit" class={options.oidc ? '' : 'primary'} disabled={isBusy}>
          Sign in
        </button>
      </form>
      <div class="hint">
        {options.methods.includes('link') ? (
          <>
            <p>Or open the link that this command prints. It can be used once.</p>
            <Command text="oarlock console" />
            <DataHint />
          </>
        ) : (
          <>
            <p>This command prints a token of a ServiceAccount.</p>
            <Command text="kubectl create token NAME -n NAMESPACE" />
          </>
        )}
      </div>
    </main>
  )
}
