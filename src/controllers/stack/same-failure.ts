import { createHash } from 'node:crypto'
import type { Run, StackStatus } from '../../api/index.ts'
import type { Settings } from './settings.ts'

/** A Stack whose Runs fail the same way so many times in a row, whatever the revision, is poisoned. */
export const poisonedAfter = 10

/** Reasons that say something of the worker's machine and have a rhythm of their own. */
const notCounted = new Set(['EngineNotFound', 'EngineVersionMismatch'])

/** Counts a failed Run in `status.sameFailure`. */
export function countFailure(status: StackStatus, run: Run): void {
  if (notCounted.has(run.status?.reason ?? '')) return
  const digest = failureDigest(run)
  const { generation } = run.spec.stackRef
  const before = status.sameFailure
  const isSame = before?.digest === digest && before.generation === generation
  status.sameFailure = { digest, count: isSame ? before.count + 1 : 1, generation }
}

/** Forgets what was counted for another generation: a change of the spec is a new start. */
export function forgetOldFailures(status: StackStatus, generation: number): void {
  if (status.sameFailure && status.sameFailure.generation !== generation) delete status.sameFailure
}

/** How often it failed the same way, if it is poisoned; retries that the Stack asks for are never cut short by this. */
export function poisonedBy(status: StackStatus, settings: Settings): number | undefined {
  const { count } = status.sameFailure ?? { count: 0 }
  return count >= Math.max(poisonedAfter, settings.retryLimit + 1) ? count : undefined
}

/** Equal for failures that differ only in numbers, hashes and other names that change from Run to Run. */
function failureDigest({ status }: Run): string {
  const text = `${status?.reason ?? ''}\n${status?.message ?? ''}`.slice(0, 2_000)
  const lasting = text.replace(/\b[0-9a-f]{7,}(?:-[0-9a-f]+)*\b/gi, '#').replace(/\d+/g, '#')
  return createHash('sha256').update(lasting).digest('hex').slice(0, 16)
}
