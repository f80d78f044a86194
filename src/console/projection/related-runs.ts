import type { RunFacts, RunRow } from '../protocol/index.ts'

/** Triggers of a Run that tries again what the one before did not achieve. */
const furtherAttempts: ReadonlySet<string> = new Set(['Retry', 'RecoveredFrom'])

/** The Runs that a user looks at together with a Run. @param runs of its Stack, in any order. */
export function relatedRuns(run: RunRow | undefined, runs: readonly RunRow[]): Pick<RunFacts, 'attempts' | 'planRun' | 'applyRun'> {
  if (!run) return { attempts: [] }
  const sorted = runs.toSorted((a, b) => a.epoch - b.epoch)
  const at = sorted.findIndex(({ key }) => key === run.key)
  const isFurther = (index: number) => furtherAttempts.has(sorted[index]?.trigger ?? '')
  let [first, last] = [at, at]
  while (first > 0 && isFurther(first)) first--
  while (isFurther(last + 1)) last++
  const planRun = sorted.find(({ name }) => name === run.planRun)
  const applyRun = sorted.findLast(other => other.planRun === run.name)
  return { attempts: last > first ? sorted.slice(first, last + 1) : [], ...(planRun && { planRun }), ...(applyRun && { applyRun }) }
}
