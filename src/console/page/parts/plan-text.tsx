import { useEffect, useMemo, useState } from 'preact/hooks'
import { request } from '../request.ts'
import { stored } from '../stored.ts'
import { formatCount } from './format.ts'
import { isNarrow } from './media.ts'
import { type PlanBlock, planBlocks } from './plan-blocks.ts'
import { visibleText } from './visible-text.ts'

type StoredPlan = {
  readonly digest: string
  readonly engine: string
  readonly text: string
  readonly missing?: { readonly lines: number; readonly bytes: number }
}

/** The plan that a Run has stored. */
function useStoredPlan(namespace: string, runName: string): { readonly plan?: StoredPlan; readonly problem?: string } {
  const [state, setState] = useState<{ plan?: StoredPlan; problem?: string }>({})
  useEffect(() => {
    let isCurrent = true
    setState({})
    request<StoredPlan>('GET', `plans/${encodeURIComponent(namespace)}/${encodeURIComponent(runName)}`).then(
      plan => isCurrent && setState({ plan }),
      (error: Error) => isCurrent && setState({ problem: error.message }),
    )
    return () => {
      isCurrent = false
    }
  }, [namespace, runName])
  return state
}

type Props = {
  readonly namespace: string
  readonly runName: string
  /** Of the plan that awaits approval. */
  readonly digest: string
  /** Called when exactly this plan is shown in full: nothing else may be approved. */
  readonly onShown: () => void
}

/** The plan in the words of its engine, as `oarlock plan` prints it, for a user who decides about it. */
export function PlanText({ namespace, runName, digest, onShown }: Props) {
  const { plan, ...state } = useStoredPlan(namespace, runName)
  const isOther = plan !== undefined && plan.digest !== digest
  const problem =
    state.problem ??
    (isOther
      ? 'the plan that is stored is another one than the one that awaits approval'
      : plan?.missing && `${formatCount(plan.missing.lines, 'line')} are missing: the plan is too large to be shown`)
  const isShown = plan !== undefined && problem === undefined
  useEffect(() => {
    if (isShown) onShown()
  }, [isShown])
  return (
    <>
      {plan && <Blocks plan={plan} />}
      {!plan && problem === undefined && <p aria-live="polite">Reading the plan…</p>}
      {problem !== undefined && (
        <p class="problem" role="alert">
          The plan cannot be shown in full, so it cannot be confirmed here: {problem}
        </p>
      )}
    </>
  )
}

/** The plan of a Run, to read. */
export function StoredPlanText({ namespace, runName }: Pick<Props, 'namespace' | 'runName'>) {
  const { plan, problem } = useStoredPlan(namespace, runName)
  if (problem !== undefined) return <p class="problem">The plan cannot be shown: {problem}</p>
  if (!plan) return <p aria-live="polite">Reading the plan…</p>
  return (
    <>
      <Blocks plan={plan} />
      {plan.missing && <p class="problem">{formatCount(plan.missing.lines, 'line')} are missing: the plan is too large to be shown.</p>}
    </>
  )
}

/** Whether long lines continue below, in all plans. Undefined until the user chooses: on a phone they do, because most are wider than it. */
const isWrapped = stored('plan.wrap', undefined, (value): value is boolean | undefined => typeof value === 'boolean')

/** Everything is open at first: a user who decides has seen all of it. */
function Blocks({ plan: { text, engine } }: { readonly plan: StoredPlan }) {
  const blocks = useMemo(() => planBlocks(visibleText(text), engine), [text, engine])
  const wraps = isWrapped.value ?? isNarrow.value
  return (
    <>
      <div class="plan-tools">
        <button
          type="button"
          class="small"
          aria-label="Wrap the lines of the plan"
          aria-pressed={wraps}
          onClick={() => {
            isWrapped.value = !wraps
          }}
        >
          Wrap
        </button>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class={`plan-text ${wraps ? 'wrapped' : ''}`} aria-label="Text of the plan" tabIndex={0}>
        {blocks.map((block, index) =>
          block.title === undefined ? (
            <Lines key={index} {...block} />
          ) : (
            <details key={index} open>
              <summary class={block.tone}>{block.title.trim().replace(/^# /, '')}</summary>
              <Lines {...block} />
            </details>
          ),
        )}
      </section>
    </>
  )
}

/** More lines of one block have no colours: an element for each would make the page slow. */
const maxColoredLines = 5_000

const Lines = ({ lines }: PlanBlock) => (
  <pre>
    {lines.length > maxColoredLines
      ? lines.join('\n')
      : lines.map((line, index) => <span key={index} class={classOf(line)}>{`${line}\n`}</span>)}
  </pre>
)

/** A line of a plan begins with a sign for what it does. */
function classOf(line: string): string | undefined {
  const [, sign = ''] = /^\s*(-\/\+|\+\/-|\+|-|~|<=)\s/.exec(line) ?? []
  if (sign === '') return undefined
  return sign === '+' ? 'good' : sign === '-' ? 'bad' : 'attention'
}
