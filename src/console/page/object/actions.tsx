import { useState } from 'preact/hooks'
import { type Action, type ActionRequest, type ActionResult, destructiveActions } from '../../protocol/index.ts'
import { Command } from '../parts/command.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { notify } from '../parts/notices.tsx'
import { request } from '../request.ts'
import { PlanText } from './plan-text.tsx'

type Props = Pick<ActionRequest, 'namespace' | 'name' | 'digest' | 'resourceVersion'> & {
  readonly actions: readonly Action[]
  /** The Run that has made the plan that awaits approval. */
  readonly planRun?: string | undefined
}

/** A button for each action, with the reason if it cannot be used. Every action is shown with its command before it is carried out. */
export function Actions({ actions, planRun, ...object }: Props) {
  const [chosen, setChosen] = useState<Action>()
  return (
    <>
      <ul class="actions">
        {actions.map(action => (
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
      {chosen && <Confirm action={chosen} object={object} planRun={planRun} onClose={() => setChosen(undefined)} />}
    </>
  )
}

type ConfirmProps = {
  readonly action: Action
  readonly object: Omit<Props, 'actions' | 'planRun'>
  readonly planRun: string | undefined
  readonly onClose: () => void
}

function Confirm({ action: { name: action, label, command }, object, planRun, onClose }: ConfirmProps) {
  // What is sent is what was shown when the dialog was opened: the server rejects it if the object has changed since.
  const [shown] = useState(object)
  const [run] = useState(planRun)
  const [isPlanShown, setPlanShown] = useState(false)
  const [typed, setTyped] = useState('')
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const isDestructive = destructiveActions.has(action)
  const isApproval = action === 'approve'
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
        {isApproval && run !== undefined && shown.digest !== undefined && (
          <PlanText namespace={shown.namespace ?? ''} runName={run} digest={shown.digest} onShown={() => setPlanShown(true)} />
        )}
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
          disabled={isBusy || (isDestructive && typed !== shown.name) || (isApproval && !isPlanShown)}
        >
          {isBusy ? 'Sending…' : label}
        </button>
      </form>
    </Dialog>
  )
}
