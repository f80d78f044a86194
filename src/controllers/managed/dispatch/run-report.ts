import { phaseOf, type Run, type Stack } from '../../../api/index.ts'
import type { RunReport } from '../managed-object.ts'

/** The newest Run of the Stack, for `status.run`; `run` is the Run itself, if it was read. */
export function runReport({ status }: Stack, run: Run | undefined): RunReport | undefined {
  if (!run) return status?.lastRun && { name: status.lastRun.name, type: status.lastRun.type, phase: status.lastRun.phase }
  const { progress, message } = run.status ?? {}
  return { name: run.metadata.name, type: run.spec.type, phase: phaseOf(run), ...(progress && { progress }), ...(message && { message }) }
}

/** ` (3/12: install packages)`, for messages. */
export function formatProgress(run: RunReport | undefined): string {
  const { progress } = run ?? {}
  return progress ? ` (${progress.done}/${progress.total}${progress.current ? `: ${progress.current}` : ''})` : ''
}
