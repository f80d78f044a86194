import { createHash } from 'node:crypto'
import type { Run, StackStatus } from '../../api/index.ts'
import { missingProgramReasons } from './constants.ts'
import type { Settings } from './settings.ts'

/** Number of consecutive Runs that must fail the same way, whatever their revision, before a Stack is poisoned: it gets no further Run. */
export const poisonThreshold = 10

/** Reasons that concern the worker's machine and that have a retry interval of their own. */
const uncountedReasons = new Set([...missingProgramReasons, 'EngineVersionMismatch'])

/** `status.sameFailure` once `run`, which failed, is counted. */
export function countFailure(previous: StackStatus['sameFailure'], run: Run): StackStatus['sameFailure'] {
  if (uncountedReasons.has(run.status?.reason ?? '')) return previous
  const digest = failureDigest(run)
  const { generation } = run.spec.stackRef
  const isSame = previous?.digest === digest && previous.generation === generation
  return { digest, count: isSame ? previous.count + 1 : 1, generation }
}

/** Number of equal consecutive failures if the Stack is poisoned. Never fewer than the retries that the Stack configures. */
export function poisonCount(status: Pick<StackStatus, 'sameFailure'>, settings: Settings): number | undefined {
  const { count } = status.sameFailure ?? { count: 0 }
  return count >= Math.max(poisonThreshold, settings.retryLimit + 1) ? count : undefined
}

/** Equal for failures that differ only in numbers, hashes and other identifiers that change with each Run. */
function failureDigest({ status }: Run): string {
  const text = `${status?.reason ?? ''}\n${status?.message ?? ''}`.slice(0, 2_000)
  const normalized = text.replace(/\b[0-9a-f]{7,}(?:-[0-9a-f]+)*\b/gi, '#').replace(/\d+/g, '#')
  return createHash('sha256').update(normalized).digest('hex').slice(0, 16)
}
