import { annotations } from './names.ts'
import { isMutating, type RunType } from './run.ts'
import type { Stack } from './stack.ts'

/** Whether a Stack may have resources, as far as its status shows it: its Runs, which know it better, may be unreadable for a user. */
export function mayHaveResources({ metadata, status }: Pick<Stack, 'metadata' | 'status'>): boolean {
  const { applied, resources = 0, stateVersion = 0, lastRun } = status ?? {}
  if (lastRun?.type === 'Destroy' && lastRun.phase === 'Succeeded') return false
  const isImported = metadata.annotations?.[annotations.importedState] !== undefined
  return isImported || applied !== undefined || resources > 0 || stateVersion > 0 || isMutating((lastRun?.type ?? 'Plan') as RunType)
}

/** Whether the deletion of its namespace would leave resources of the Stack that are to be destroyed. */
export function mayLeaveResources(stack: Stack): boolean {
  if (stack.spec.deletionProtection) return true
  return stack.spec.deletion !== 'Orphan' && mayHaveResources(stack)
}
