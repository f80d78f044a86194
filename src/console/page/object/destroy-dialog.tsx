import { useEffect, useState } from 'preact/hooks'
import type { Action, ActionRequest, ActionResult, Destruction, PlanCounts, RunFacts, RunRow } from '../../protocol/index.ts'
import { actionEffects, emptyDestructionEffect } from '../parts/action-effects.ts'
import { ActionForm, type Shown, type Step } from '../parts/actions.tsx'
import { Badge, PlanChanges } from '../parts/badge.tsx'
import { CloseFooter, Dialog } from '../parts/dialog.tsx'
import { formatCount } from '../parts/format.ts'
import { visibleText } from '../parts/visible-text.ts'
import { request } from '../request.ts'
import { pathTo } from '../router.ts'
import { useView } from '../stream/use-view.ts'

/** Of the Stack that is shown. Its `resourceVersion` changes with everything else of it. */
type ShownVersion = Required<Pick<ActionRequest, 'uid' | 'generation'>> & { readonly resourceVersion: string }

type Name = { readonly namespace: string; readonly name: string }

/**
 * Plans the destruction of a Stack first: what is confirmed is exactly the plan that was shown (invariant 11). What would keep the destruction waiting is stated
 * before that. Of a Stack that is being deleted, the plan that waits is confirmed.
 */
export function DestroyDialog({
  action,
  stack,
  version,
  runs,
  isDeleted,
  onClose,
}: {
  readonly action: Action
  readonly stack: Name
  readonly version: ShownVersion | undefined
  /** Of the Stack, the newest first. */
  readonly runs: readonly RunRow[]
  /** Whether the Stack has disappeared. */
  readonly isDeleted: boolean
  readonly onClose: () => void
}) {
  /** The Runs before the plan was requested. */
  const [known, setKnown] = useState<ReadonlySet<string>>()
  const [problem, setProblem] = useState('')
  const [step, setStep] = useState<Step['kind']>('confirm')
  const [destruction, setDestruction] = useState<Destruction>()
  // The first one: the deletion may plan again, and the dialog keeps what was confirmed.
  const planned = known && runs.findLast(({ key, type }) => type === 'Plan' && !known.has(key))
  const { namespace, name } = stack
  const isRead = step === 'confirm' && !isDeleted && (destruction?.isDeleting !== false || !planned)
  // What a user confirms stays as it was shown.
  useEffect(() => {
    if (!isRead) return
    let isCurrent = true
    request<Destruction>('GET', ['destructions', namespace, name].map(encodeURIComponent).join('/')).then(
      found => isCurrent && setDestruction(found),
      (error: Error) => isCurrent && setProblem(error.message),
    )
    return () => {
      isCurrent = false
    }
  }, [namespace, name, version?.resourceVersion, isRead])
  const plan = async () => {
    const before = new Set(runs.map(({ key }) => key))
    setProblem('')
    try {
      await request<ActionResult>('POST', 'actions', { action: 'plan-destroy', ...stack })
      setKnown(before)
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  const form = { action, stack, onStep: setStep, onClose }
  return (
    <Dialog title={`${action.label}: ${namespace}/${name}`} onClose={onClose}>
      {isDeleted ? (
        <Deleted stack={stack} isDestroyed={step === 'running' || step === 'done'} onClose={onClose} />
      ) : destruction?.pending ? (
        <Pending key={destruction.pending.digest} {...form} destruction={destruction} plan={destruction.pending} />
      ) : planned ? (
        <Planned key={planned.key} {...form} version={destruction?.isDeleting ? undefined : version} run={planned} />
      ) : destruction && destruction.blockers.length > 0 && !known ? (
        <Blocked blockers={destruction.blockers} onClose={onClose} />
      ) : destruction?.isEmpty ? (
        <>
          <p>The Stack has created nothing: there is nothing to destroy, and nothing to plan.</p>
          <ConfirmDestruction {...form} shown={{ ...versionOf(destruction), nothingToDestroy: true }} />
        </>
      ) : (
        <>
          <p>First a plan shows what would be destroyed. Nothing is destroyed before you confirm it.</p>
          <p class="problem" role="alert">
            {problem}
          </p>
          <p aria-live="polite">{known && 'The plan is requested: its Run starts soon.'}</p>
          <footer>
            <button type="button" onClick={onClose}>
              Back
            </button>
            <button type="button" class="primary" disabled={known !== undefined || !destruction} onClick={() => void plan()}>
              Plan the destruction
            </button>
          </footer>
        </>
      )}
    </Dialog>
  )
}

const versionOf = ({ uid, generation }: { readonly uid: string; readonly generation: number }) => ({ uid, generation })

function Blocked({ blockers, onClose }: { readonly blockers: readonly string[]; readonly onClose: () => void }) {
  return (
    <>
      <p class="problem" role="alert">
        The Stack cannot be destroyed now:
      </p>
      <ul>
        {blockers.map(blocker => (
          <li key={blocker}>{visibleText(blocker)}</li>
        ))}
      </ul>
      <CloseFooter onClose={onClose} />
    </>
  )
}

type FormProps = {
  readonly action: Action
  readonly stack: Name
  readonly onStep: (step: Step['kind']) => void
  readonly onClose: () => void
}

const ConfirmDestruction = ({ action, stack, shown, onStep, onClose }: FormProps & { readonly shown: Shown }) => (
  <ActionForm
    action={action}
    target={{ kind: 'stacks', ...stack }}
    shown={shown}
    effect={shown.planRun === undefined ? emptyDestructionEffect : actionEffects.destroy}
    onStep={onStep}
    onClose={onClose}
  />
)

/** The plan that a deletion waits for: it differs from the one that was confirmed, or that confirmation has expired. */
function Pending({
  destruction,
  plan,
  ...form
}: FormProps & { readonly destruction: Destruction; readonly plan: NonNullable<Destruction['pending']> }) {
  return (
    <>
      <p>
        The Stack is being deleted, and waits until a user confirms this plan:{' '}
        <a href={pathTo(['runs', form.stack.namespace, plan.runName])}>{plan.runName}</a> would destroy{' '}
        {formatCount(plan.destroy, 'resource')}: <PlanChanges plan={plan} />
      </p>
      <ConfirmDestruction {...form} shown={{ ...versionOf(destruction), digest: plan.digest, planRun: plan.runName }} />
    </>
  )
}

/** @param isDestroyed whether that was requested here: a Stack is deleted only after its resources are destroyed then. */
function Deleted({
  stack: { namespace, name },
  isDestroyed,
  onClose,
}: {
  readonly stack: Name
  readonly isDestroyed: boolean
  readonly onClose: () => void
}) {
  return (
    <>
      <p role="status" class="result">
        Stack {namespace}/{name} is {isDestroyed ? 'destroyed and deleted' : 'deleted'}.
      </p>
      {!isDestroyed && <p>Another user or program deleted it while this dialog was open.</p>}
      <p>
        <a href={pathTo(['stacks'])}>All Stacks</a>
      </p>
      <CloseFooter onClose={onClose} />
    </>
  )
}

type PlanRun = {
  readonly spec?: { readonly planMode?: string }
  readonly status?: {
    readonly phase?: string
    readonly message?: string
    readonly plan?: PlanCounts & { readonly digest: string }
    /** Whether the plan has changes. */
    readonly changed?: boolean
  }
}

/** @param version undefined while nothing can be confirmed. */
function Planned({ version, run, ...form }: FormProps & { readonly version: ShownVersion | undefined; readonly run: RunRow }) {
  const view = useView<RunFacts>({ kind: 'run', namespace: run.namespace, name: run.name })
  const { spec, status } = (view.facts.value?.object ?? {}) as PlanRun
  const phase = status?.phase ?? run.phase
  const link = <a href={pathTo(['runs', run.namespace, run.name])}>{run.name}</a>
  // Another user may have requested a plan of changes in the same moment: that is none to confirm here.
  if (spec && spec.planMode !== 'Destroy')
    return <p class="problem">{link} is not a plan of the destruction: close this dialog and try again.</p>
  if (phase === 'Failed' || phase === 'Canceled' || phase === 'Lost')
    return (
      <p class="problem" role="alert">
        {link} cannot plan the destruction: {status?.message ?? phase}
      </p>
    )
  if (!spec || phase !== 'Succeeded' || version === undefined)
    return (
      <p aria-live="polite">
        <Badge value={phase} /> {link} plans the destruction.
      </p>
    )
  const isEmpty = !status?.plan || status.changed === false
  return (
    <>
      <p>
        {status?.plan && !isEmpty ? (
          <>
            {link} would destroy {formatCount(status.plan.destroy, 'resource')}: <PlanChanges plan={status.plan} />
          </>
        ) : (
          <>{link} has found nothing to destroy.</>
        )}
      </p>
      <ConfirmDestruction
        {...form}
        shown={{
          ...versionOf(version),
          ...(status?.plan ? { digest: status.plan.digest } : { nothingToDestroy: true }),
          // No text is stored of a plan without changes.
          ...(!isEmpty && { planRun: run.name }),
        }}
      />
    </>
  )
}
