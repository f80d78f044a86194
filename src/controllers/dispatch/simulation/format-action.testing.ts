import type { DispatchAction } from '../dispatch-action.ts'
import { nameOf } from './simulated-api-server.testing.ts'

/** If more Runs than this start at the same time, only their number by namespace is printed. */
const maxListedStarts = 6

/** All assignments of a decision on one line; undefined if there are none. */
export function formatAssignments(actions: readonly DispatchAction[]): string | undefined {
  const assigned = actions.filter(action => action.kind === 'AssignRun')
  if (assigned.length === 0) return undefined
  return assigned.length <= maxListedStarts
    ? assigned.map(({ object, worker }) => `${nameOf(object)}→${worker}`).join(' ')
    : [...Map.groupBy(assigned, ({ object }) => object.namespace)].map(([ns, runs]) => `${ns} ×${runs.length}`).join(' ')
}

/** Undefined for actions that are printed otherwise, or are of no interest. */
export function formatAction(action: DispatchAction): string | undefined {
  switch (action.kind) {
    case 'AssignRun':
    case 'PatchPoolStatus':
    case 'PatchTenantStatus':
      return undefined
    case 'PatchRunStatus':
      return action.status.phase === 'Queued'
        ? undefined
        : [nameOf(action.object), action.status.phase, action.status.message ?? ''].join(' ').trim()
    case 'StartWorkers':
      return `start ${action.workers.join(' ')}${action.claim === undefined ? '' : ` (claims up to ${action.claim})`}`
    case 'StopProcess':
      return `stop ${action.worker}${action.force ? ' by force' : ''}: ${action.reason}`
    case 'ReportStartFailure':
      return `start failure of pool ${action.name}: ${action.failure.reason}: ${action.failure.message}`
    case 'ConfirmLoss':
      return `confirm the loss of ${action.worker}`
    case 'DeleteWorkers':
      return `DeleteWorkers ${action.names.join(' ')}`
    default:
      return `${action.kind} ${nameOf(action.object)}`
  }
}
