import { useEffect, useState } from 'preact/hooks'
import { request } from '../request.ts'

type StoredPlan = { readonly digest: string; readonly text: string; readonly missing?: { readonly lines: number; readonly bytes: number } }

type Props = {
  readonly namespace: string
  readonly runName: string
  /** Of the plan that awaits approval. */
  readonly digest: string
  /** Called when exactly this plan is shown in full: nothing else may be approved. */
  readonly onShown: () => void
}

/** The plan in the words of its engine, as `oarlock plan` prints it. */
export function PlanText({ namespace, runName, digest, onShown }: Props) {
  const [plan, setPlan] = useState<StoredPlan>()
  const [problem, setProblem] = useState('')
  useEffect(() => {
    let isCurrent = true
    request<StoredPlan>('GET', `plans/${encodeURIComponent(namespace)}/${encodeURIComponent(runName)}`).then(
      stored => {
        if (!isCurrent) return
        setPlan(stored)
        if (stored.digest !== digest) setProblem('the plan that is stored is another one than the one that awaits approval')
        else if (stored.missing) setProblem(`${stored.missing.lines} lines are missing: the plan is too large to be shown`)
        else onShown()
      },
      (error: Error) => isCurrent && setProblem(error.message),
    )
    return () => {
      isCurrent = false
    }
  }, [namespace, runName, digest])
  return (
    <>
      {plan && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        <pre class="plan-text" tabIndex={0}>
          {plan.text.split('\n').map((line, index) => (
            <span key={index} class={classOf(line)}>{`${line}\n`}</span>
          ))}
        </pre>
      )}
      {!plan && problem === '' && <p aria-live="polite">Reading the plan…</p>}
      {problem !== '' && (
        <p class="problem" role="alert">
          The plan cannot be shown in full, so it cannot be confirmed here: {problem}
        </p>
      )}
    </>
  )
}

/** A line of a plan begins with a sign for what it does. */
function classOf(line: string): string | undefined {
  const [, sign = ''] = /^\s*(-\/\+|\+\/-|\+|-|~|<=)\s/.exec(line) ?? []
  if (sign === '') return undefined
  return sign === '+' ? 'good' : sign === '-' ? 'bad' : 'attention'
}
