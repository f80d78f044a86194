/** A Stack as far as its next Run depends on it. */
export type RunCauses = {
  readonly metadata?: { readonly deletionTimestamp?: string }
  readonly spec?: { readonly suspend?: boolean; readonly drift?: string; readonly retry?: { readonly limit?: number } }
  readonly status?: {
    readonly failures?: number
    readonly nextRunAt?: string
    readonly plan?: unknown
    readonly conditions?: readonly Condition[]
  }
}
type Condition = { readonly type: string; readonly status: string; readonly reason?: string }

const isTrue = ({ status }: RunCauses, type: string) =>
  status?.conditions?.some(each => each.type === type && each.status === 'True') === true

/** Why the next Run of a Stack starts, or why none does; undefined while one is active. */
export function nextRunReason(stack: RunCauses, activeRun: string | undefined): string | undefined {
  const { metadata, spec, status } = stack
  if (activeRun !== undefined) return undefined
  if (spec?.suspend) return 'none starts while the Stack is suspended'
  if (isTrue(stack, 'AwaitingApproval')) return 'when a user has approved the plan'
  if (metadata?.deletionTimestamp !== undefined) return 'until the Stack is deleted'
  if (status?.failures) {
    const failed = `${status.failures} failed ${status.failures === 1 ? 'Run' : 'Runs'}`
    return status.nextRunAt === undefined
      ? `none after ${failed}, until the Stack, its source or its inputs change`
      : `a retry after ${failed}`
  }
  if (isTrue(stack, 'Stalled')) return 'when the Stack, its source or its inputs change, or a user requests one'
  if (status?.nextRunAt === undefined) return 'when the Stack, its source or its inputs change, or a user requests one'
  return spec?.drift === 'Report' ? 'a check that reports drift' : 'a check that corrects drift'
}
