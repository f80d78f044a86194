import { useState } from 'preact/hooks'
import { type Action, type ActionRequest, type ActionResult, destructiveActions } from '../../protocol/index.ts'
import { Command } from '../parts/command.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { notify } from '../parts/notices.tsx'
import { request } from '../request.ts'

type Props = Pick<ActionRequest, 'namespace' | 'name' | 'digest' | 'resourceVersion'> & { readonly actions: readonly Action[] }

/** A button for each action, with the reason if it cannot be used. Every action is shown with its command before it is carried out. */
export function Actions({ actions, ...object }: Props) {
  const [chosen, setChosen] = useState<Action>()
  return (
    <>
      <ul class="actions">
        {/* A rollback needs a version of the state, which the page of the Stack does not show. */}
        {actions
          .filter(({ name }) => name !== 'rollback')
          .map(action => (
            <li key={action.name}>
              <button
                type="button"
                class={destructiveActions.has(action.name) ? 'button danger' : 'button'}
                disabled={!action.enabled}
                aria-describedby={action.why === undefined ? undefined : `why-${action.name}`}
                onClick={() => setChosen(action)}
              >
                {action.label}
              </button>
              {action.why !== undefined && (
                <span id={`why-${action.name}`} class="muted">
                  {action.why}
                </span>
              )}
            </li>
          ))}
      </ul>
      {chosen && <Confirm action={chosen} object={object} onClose={() => setChosen(undefined)} />}
    </>
  )
}

type ConfirmProps = { readonly action: Action; readonly object: Omit<Props, 'actions'>; readonly onClose: () => void }

function Confirm({ action: { name: action, label, command }, object, onClose }: ConfirmProps) {
  // What is sent is what was shown when the dialog was opened: the server rejects it if the object has changed since.
  const [shown] = useState(object)
  const [typed, setTyped] = useState('')
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const isDestructive = destructiveActions.has(action)
  const submit = async () => {
    setBusy(true)
    setError('')
    try {
      const body: ActionRequest = { action, ...shown, ...(isDestructive && { confirmation: typed }) }
      const result = await request<ActionResult>('POST', 'actions', body)
      if (!result.ok) throw new Error(result.message)
      notify('good', result.message)
      onClose()
    } catch (failure) {
      setError((failure as Error).message)
      setBusy(false)
    }
  }
  return (
    <Dialog title={`${label}: ${shown.namespace}/${shown.name}`} onClose={onClose}>
      <form
        onSubmit={event => {
          event.preventDefault()
          void submit()
        }}
      >
        <p class="muted">The same as:</p>
        <Command text={command} />
        {isDestructive && (
          <label>
            Type <strong>{shown.name}</strong> to confirm
            <input value={typed} autocomplete="off" spellcheck={false} onInput={event => setTyped(event.currentTarget.value)} />
          </label>
        )}
        <p class="error" role="alert">
          {error}
        </p>
        <button
          type="submit"
          class={isDestructive ? 'button danger' : 'button primary'}
          disabled={isBusy || (isDestructive && typed !== shown.name)}
        >
          {isBusy ? 'Sending…' : label}
        </button>
      </form>
    </Dialog>
  )
}
