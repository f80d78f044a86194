import type { WorkerPool, WorkerPoolStatus } from '../../../api/index.ts'
import { equalJson, findCondition, setCondition } from '../../../kubernetes/object/index.ts'
import { currentFailure, failingDomains, type PoolStatusCounts, type StartFailure, type StartState } from '../pool/index.ts'

export type PoolStatusInput = {
  readonly pool: WorkerPool
  readonly counts: PoolStatusCounts
  readonly starts: StartState | undefined
  readonly specError: string | undefined
  /** Partitions whose report in `status.demand` has expired. Default: none. */
  readonly expired?: readonly string[] | undefined
  readonly nowMs: number
}

/** How many namespaces the message names. */
const maxNamespaces = 3

/** The status of a pool: counts and the condition `Ready`; and how it differs from the present one. */
export function poolStatusOf({ pool, counts, starts, specError, expired = [], nowMs }: PoolStatusInput): {
  readonly status: WorkerPoolStatus
  readonly change: 'None' | 'Count' | 'Urgent'
} {
  const { generation = 1 } = pool.metadata
  const { problem, ...readiness } = poolReadiness(starts, specError)
  const ready = { type: 'Ready', ...readiness, observedGeneration: generation } as const
  const conditions = setCondition(pool.status?.conditions, ready, nowMs)
  const { problem: _, outdated: _o, ...previous } = pool.status ?? {}
  const demand =
    previous.demand && Object.fromEntries(Object.entries(previous.demand).filter(([partition]) => !expired.includes(partition)))
  const status: WorkerPoolStatus = {
    ...{ ...previous, ...counts, observedGeneration: generation, conditions },
    ...(demand && { demand }),
    ...(problem !== undefined && { problem }),
  }
  if (equalJson(pool.status, status)) return { status, change: 'None' }
  const before = findCondition(pool.status?.conditions, 'Ready')
  const isUrgent =
    pool.status?.observedGeneration !== generation ||
    before?.status !== ready.status ||
    before.reason !== ready.reason ||
    pool.status.problem !== problem
  return { status, change: isUrgent ? 'Urgent' : 'Count' }
}

export type PoolReadiness = {
  readonly status: 'True' | 'False'
  readonly reason: string
  readonly message: string
  /** For lists: the reason, after the namespace if the workers of others can be started. Undefined: all workers can be started. */
  readonly problem: string | undefined
}

/**
 * The condition `Ready` of a pool: whether its workers can be started. It remains True while only the Pods of some namespaces fail, because what one
 * namespace lacks does not affect the others: that is the case once a Pod of a namespace without failures has registered.
 */
export function poolReadiness(state: StartState | undefined, specError: string | undefined): PoolReadiness {
  const failure = state && currentFailure(state)
  if (state && failure) {
    const message = state.failures > 0 ? `${failure.message}; failed starts in a row: ${state.failures}` : failure.message
    return { status: 'False', reason: failure.reason, message, problem: failure.reason }
  }
  const failing = state ? failingNamespaces(state) : []
  const message = `Pods do not start in ${failing.length === 1 ? 'namespace' : 'namespaces'} ${formatNamespaces(failing)}`
  const [first, ...others] = failing
  const problem = first && `${first.namespace}: ${first.failure.reason}${others.length > 0 ? `, and ${others.length} more` : ''}`
  if (state && first && !startsElsewhere(state)) return { status: 'False', reason: first.failure.reason, message, problem }
  if (specError !== undefined) return { status: 'False', reason: 'InvalidSchedule', message: specError, problem: 'InvalidSchedule' }
  if (first) return { status: 'True', reason: 'NamespaceFailing', message: `workers can be started in others; ${message}`, problem }
  return { status: 'True', reason: 'Ready', message: 'workers can be started', problem: undefined }
}

type FailingNamespace = { readonly namespace: string; readonly failure: StartFailure }

/** The namespaces in which Pods fail to start, by name. A trust domain of such a Pod is its namespace and the ServiceAccount (`queue/pod-place.ts`). */
function failingNamespaces(state: StartState): readonly FailingNamespace[] {
  const byNamespace = new Map<string, StartFailure>()
  for (const [domain, failure] of failingDomains(state)) byNamespace.set(domain.split('/', 1)[0]!, failure)
  return [...byNamespace].map(([namespace, failure]) => ({ namespace, failure })).sort((a, b) => (a.namespace < b.namespace ? -1 : 1))
}

const startsElsewhere = (state: StartState): boolean =>
  state.lastStartedDomain !== undefined && !failingDomains(state).has(state.lastStartedDomain)

function formatNamespaces(failing: readonly FailingNamespace[]): string {
  const more = failing.length - maxNamespaces
  const texts = failing.slice(0, maxNamespaces).map(({ namespace, failure }) => `${namespace}: ${failure.reason}: ${failure.message}`)
  return texts.join('; ') + (more > 0 ? `; and ${more} more` : '')
}
