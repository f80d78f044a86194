import { useState } from 'preact/hooks'
import type { SignInOptions } from '../../protocol/index.ts'
import { Command } from '../parts/command.tsx'
import { signInWithToken } from '../session.ts'
import { Logo } from './logo.tsx'

export function SignInPage({ options, message }: { readonly options: SignInOptions; readonly message?: string | undefined }) {
  const { methods, oidc } = options
  return (
    <main class="sign-in" tabIndex={-1}>
      <div class="card">
        <Logo />
        <h1>Sign in</h1>
        <p class="error" role="alert">
          {message}
        </p>
        {oidc && (
          <a class="button primary wide" href={oidc.signIn} data-document="">
            Sign in with {oidc.name}
          </a>
        )}
        {methods.includes('token') && <TokenForm isFirst={!oidc} />}
        {methods.includes('link') && (
          <section>
            <h2>With a link</h2>
            <p class="muted">On the machine of the server, this prints a link that signs you in once:</p>
            <Command text="oarlock console" />
          </section>
        )}
      </div>
    </main>
  )
}

function TokenForm({ isFirst }: { readonly isFirst: boolean }) {
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const submit = async (form: HTMLFormElement) => {
    const token = String(new FormData(form).get('token')).trim()
    setBusy(true)
    setError('')
    try {
      await signInWithToken(token)
    } catch (failure) {
      setError(`The token was not accepted: ${(failure as Error).message}`)
      setBusy(false)
    }
  }
  return (
    <form
      onSubmit={event => {
        event.preventDefault()
        void submit(event.currentTarget)
      }}
    >
      <label for="token">Bearer token</label>
      <input
        id="token"
        name="token"
        type="password"
        autocomplete="off"
        spellcheck={false}
        required
        aria-describedby="token-error token-hint"
      />
      <p id="token-hint" class="muted">
        Of a ServiceAccount or a user, as kubectl sends it.
      </p>
      <p id="token-error" class="error" role="alert">
        {error}
      </p>
      <button type="submit" class={isFirst ? 'button primary wide' : 'button wide'} disabled={isBusy}>
        {isBusy ? 'Signing in…' : 'Sign in'}
      </button>
    </form>
  )
}
