import { createHash } from 'node:crypto'
import type { Run, StackStatus } from '../../api/index.ts'
import type { Settings } from './settings.ts'

/** Number of consecutive Runs that must fail the same way, whatever their revision, before a Stack is poisoned: it gets no further Run. */
export const poisonThreshold = 10

/** Reasons that concern the worker's machine and that have a retry interval of their own. */
const uncountedReasons = new Set(['EngineNotFound', 'EngineVersionMismatch'])

/** Counts a failed Run in `status.sameFailure`. */
export function countFailure(status: StackStatus, run: Run): void {
  if (uncountedReasons.has(run.status?.reason ?? '')) return
  const digest = failureDigest(run)
  const { generation } = run.spec.stackRef
  const previous = status.sameFailure
  const isSame = previous?.digest === digest && previous.generation === generation
  status.sameFailure = { digest, count: isSame ? previous.count + 1 : 1, generation }
}

/** Resets the count of another generation: a change of the spec starts again at 0. */
export function resetOutdatedFailures(status: StackStatus, generation: number): void {
  if (status.sameFailure && status.sameFailure.generation !== generation) delete status.sameFailure
}

/** Number of equal consecutive failures if the Stack is poisoned. Never fewer than the retries that the Stack configures. */
export function poisonCount(status: StackStatus, settings: Settings): number | undefined {
  const { count } = status.sameFailure ?? { count: 0 }
  return count >= Math.max(poisonThreshold, settings.retryLimit + 1) ? count : undefined
}

/** Equal for failures that differ only in numbers, hashes and other identifiers that change with each Run. */
function failureDigest({ status }: Run): string {
  const text = `${status?.reason ?? ''}\n${status?.message ?? ''}`.slice(0, 2_000)
  const normalized = text.replace(/\b[0-9a-f]{7,}(?:-[0-9a-f]+)*\b/gi, '#').replace(/\d+/g, '#')
  return createHash('sha256').update(normalized).digest('hex').slice(0, 16)
}
