import { useSignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import {
  type Action,
  type ActionName,
  type ActionRequest,
  type ActionResult,
  destructiveActions,
  signInTooOld,
} from '../../protocol/index.ts'
import { RequestError, request } from '../request.ts'
import { pathTo } from '../router.ts'
import { actionEffects } from './action-effects.ts'
import { Command } from './command.tsx'
import { Dialog } from './dialog.tsx'
import { shortDigest } from './format.ts'
import { Notice } from './notice.tsx'
import { PlanText } from './plan-text.tsx'
import { SignInAgain } from './sign-in-again.tsx'

export type Target = { readonly kind: 'stacks' | 'runs' | 'workers'; readonly namespace?: string; readonly name: string }

/** What the user has seen of the object: an approval is of exactly this. `planRun` has made the plan. */
export type Shown = Pick<ActionRequest, 'digest' | 'nothingToDestroy' | 'uid' | 'generation' | 'version' | 'currentVersion'> & {
  readonly planRun?: string | undefined
}

/** The request for a Run that the Stack has handled last, and the Run that was created for it. */
export type HandledRequest = { readonly request: string; readonly runName: string }

/** The actions of an object: each with its command; those that are not possible now with the reason. @param version changes when they may have. */
export function Actions({
  target,
  version,
  shown = {},
  handled,
  onOpen = {},
}: {
  readonly target: Target
  readonly version: string
  readonly shown?: Shown
  readonly handled?: HandledRequest | undefined
  /** Opens a dialog elsewhere, in place of the usual one of an action. */
  readonly onOpen?: Partial<Record<ActionName, (action: Action) => void>>
}) {
  const { kind, namespace, name } = target
  const [actions, setActions] = useState<readonly Action[]>()
  const [problem, setProblem] = useState<string>()
  const open = useSignal<Action | undefined>(undefined)
  useEffect(() => {
    let isCurrent = true
    const path = ['actions', kind, ...(namespace === undefined ? [] : [namespace]), name].map(encodeURIComponent).join('/')
    request<Action[]>('GET', path).then(
      found => {
        if (!isCurrent) return
        setActions(found)
        setProblem(undefined)
      },
      (error: Error) => isCurrent && setProblem(error.message),
    )
    return () => {
      isCurrent = false
    }
  }, [kind, namespace, name, version])
  if (problem !== undefined)
    return (
      <Notice isError title="The actions cannot be read">
        <p>{problem}</p>
      </Notice>
    )
  if (!actions) return <div class="loading" aria-busy="true" />
  const current = open.value
  const close = () => {
    open.value = undefined
  }
  return (
    <>
      <ul class="plain actions">
        {ordered(actions).map(action => (
          <li key={action.name}>
            <button
              type="button"
              class={destructiveActions.has(action.name) ? 'danger' : action.name === 'approve' && action.enabled ? 'primary' : ''}
              aria-disabled={!action.enabled}
              aria-describedby={action.why === undefined ? undefined : `why-${action.name}`}
              onClick={() => {
                const openElsewhere = onOpen[action.name]
                if (action.enabled && openElsewhere) openElsewhere(action)
                else if (action.enabled) open.value = action
              }}
            >
              {action.label}
            </button>
            <span class="why" id={`why-${action.name}`}>
              {action.why}
            </span>
            <Command text={action.command} />
          </li>
        ))}
      </ul>
      {current && (
        <Dialog title={`${current.label}: ${nameOf(target)}`} onClose={close}>
          <ActionForm action={current} target={target} shown={shown} handled={handled} onClose={close} />
        </Dialog>
      )}
    </>
  )
}

/** What waits for the user comes first. */
const ordered = (actions: readonly Action[]) => actions.toSorted((a, b) => Number(isAwaited(b)) - Number(isAwaited(a)))
const isAwaited = ({ name, enabled }: Action) => (name === 'approve' || name === 'reject') && enabled

export const nameOf = ({ namespace, name }: Target): string => (namespace === undefined ? name : `${namespace}/${name}`)

export type Step =
  | { readonly kind: 'confirm'; readonly message?: string }
  | { readonly kind: 'running' }
  | { readonly kind: 'done'; readonly message: string; readonly request?: string }
  | { readonly kind: 'failed'; readonly message: string }
  /** The server wants a sign-in of the last minutes. */
  | { readonly kind: 'sign-in'; readonly message: string }

const outdatedPlan = 'This plan is out of date: go back, and read the plan that the Stack has now.'

/** Confirms an action, carries it out and shows what came of it. */
export function ActionForm({
  action,
  target,
  shown,
  effect = action.effect ?? actionEffects[action.name],
  handled,
  onClose,
  onStep,
}: {
  readonly action: Action
  readonly target: Target
  readonly shown: Shown
  /** A sentence for the user who confirms it. */
  readonly effect?: string
  readonly handled?: HandledRequest | undefined
  readonly onClose: () => void
  /** Called with where it is: of a destruction the object may disappear before the server has answered. */
  readonly onStep?: (kind: Step['kind']) => void
}) {
  const [step, setShownStep] = useState<Step>({ kind: 'confirm' })
  const [confirmation, setConfirmation] = useState('')
  const [reason, setReason] = useState('')
  // What is approved is what was shown when the user chose to, whatever has arrived since.
  const [seen] = useState(shown)
  const [isPlanShown, setPlanShown] = useState(false)
  const isDestructive = destructiveActions.has(action.name)
  /** Invariant 11: nothing is approved or destroyed that was not shown. */
  const hasPlan =
    (action.name === 'approve' || action.name === 'reject' || isDestructive) && seen.planRun !== undefined && seen.digest !== undefined
  const { namespace, name } = target
  const isDecision = action.name === 'approve' || action.name === 'reject'
  const isOutdated = isDecision && (step.kind === 'confirm' || step.kind === 'failed') && shown.digest !== seen.digest
  const setStep = (next: Step) => {
    setShownStep(next)
    onStep?.(next.kind)
  }
  const carryOut = async () => {
    setStep({ kind: 'running' })
    const body: ActionRequest = {
      ...{ action: action.name, name, ...(namespace !== undefined && { namespace }) },
      ...((isDecision || isDestructive || action.name === 'run') && { uid: seen.uid, generation: seen.generation }),
      ...((isDecision || isDestructive) && { digest: seen.digest }),
      ...(action.name === 'reject' && reason.trim() !== '' && { reason }),
      ...(action.name === 'rollback' && { version: seen.version, currentVersion: seen.currentVersion }),
      ...(isDestructive && { nothingToDestroy: seen.nothingToDestroy, confirmation }),
    }
    try {
      const result = await request<ActionResult & { readonly ok: true }>('POST', 'actions', body)
      setStep({ ...result, kind: 'done' })
    } catch (error) {
      const wantsSignIn = error instanceof RequestError && error.reason === signInTooOld
      setStep({ kind: wantsSignIn ? 'sign-in' : 'failed', message: (error as Error).message })
    }
  }
  return step.kind === 'sign-in' ? (
    <SignInAgain
      message={step.message}
      onSignedIn={() => void carryOut()}
      onSignedInElsewhere={() => setStep({ kind: 'confirm', message: 'You have signed in again: confirm once more.' })}
    />
  ) : (
    <form
      onSubmit={event => {
        event.preventDefault()
        void carryOut()
      }}
    >
      {hasPlan && (
        <PlanText namespace={namespace ?? ''} runName={seen.planRun ?? ''} digest={seen.digest ?? ''} onShown={() => setPlanShown(true)} />
      )}
      {step.kind !== 'done' && <p>{effect}</p>}
      {action.name === 'approve' && seen.digest !== undefined && (
        <p>
          Exactly the plan with digest <code>{shortDigest(seen.digest)}</code>: no other plan is approved.
        </p>
      )}
      {action.name === 'reject' && step.kind !== 'done' && (
        <label class="field">
          <span>Reason (visible to others):</span>
          <input type="text" maxLength={1_000} value={reason} onInput={event => setReason(event.currentTarget.value)} />
        </label>
      )}
      <p>The same as:</p>
      <Command text={action.command} />
      {isDestructive && step.kind !== 'done' && (
        <label class="field">
          <span>
            Type <strong>{name}</strong> to confirm:
          </span>
          <input type="text" autoComplete="off" value={confirmation} onInput={event => setConfirmation(event.currentTarget.value)} />
        </label>
      )}
      <p aria-live="polite" class={step.kind === 'failed' || isOutdated ? 'problem' : 'result'}>
        {isOutdated ? outdatedPlan : step.kind === 'running' ? '' : step.message}
      </p>
      {step.kind === 'done' && step.request !== undefined && (
        <RequestedRun namespace={namespace ?? ''} request={step.request} handled={handled} />
      )}
      <footer>
        <button type="button" onClick={onClose}>
          {step.kind === 'done' ? 'Close' : 'Back'}
        </button>
        {step.kind !== 'done' && (
          <button
            type="submit"
            class={isDestructive ? 'danger solid' : 'primary'}
            disabled={
              step.kind === 'running' ||
              isOutdated ||
              (isDestructive && confirmation !== name) ||
              ((hasPlan || action.name === 'approve') && !isPlanShown)
            }
          >
            {step.kind === 'running' ? 'Requesting…' : action.label}
          </button>
        )}
      </footer>
    </form>
  )
}

/** Leads to the Run of a request as soon as it exists. */
function RequestedRun({
  namespace,
  request,
  handled,
}: {
  readonly namespace: string
  readonly request: string
  readonly handled: HandledRequest | undefined
}) {
  /** The last Run of the Stack may be another one later. */
  const found = useRef<string>(undefined)
  if (handled?.request === request) found.current ??= handled.runName
  return (
    <p aria-live="polite">
      {found.current === undefined ? 'Its Run starts soon.' : <a href={pathTo(['runs', namespace, found.current])}>{found.current}</a>}
    </p>
  )
}
