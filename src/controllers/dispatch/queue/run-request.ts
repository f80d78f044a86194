import { applyPolicy, defaults, type PolicySource, type Run, type RunSpec } from '../../../api/index.ts'
import { objectKey, parseQuantity, quantityMillis, quantityValue } from '../../../kubernetes/object/index.ts'
import { type PodPlace, podPlaceOf, type RunOwner } from './pod-place.ts'
import { classRank } from './priority-class.ts'

/** What a Run requires of its Worker. */
export type Requirements = {
  readonly pool: string
  readonly engine: string
  readonly engineVersion: string | undefined
  readonly labels: Readonly<Record<string, string>>
  /** Undefined: level Process, which every worker offers. */
  readonly isolation: 'Sandbox' | 'Pod' | undefined
  /** Undefined: one that every worker of that level offers. */
  readonly network: 'Private' | undefined
  /** 0: no requirement. */
  readonly cpuMillis: number
  /** 0: no requirement. */
  readonly memoryBytes: number
  /** Only Workers of this trust domain may execute it. Undefined: those of any Run that does not require a domain. */
  readonly trustDomain: string | undefined
  /** Where the Pod of its Worker has to be; undefined: where the pool says. */
  readonly pod: PodPlace | undefined
  /** Why no Worker may execute the Run: it lacks what its Tenant or its WorkerPool requires. */
  readonly violation: string | undefined
}

/** What of a Run its requirements follow from. */
export type Requested = Pick<RunSpec, 'pool' | 'policy'> & {
  readonly stack: Pick<RunSpec['stack'], 'engine' | 'placement' | 'resources' | 'isolation' | 'serviceAccountName'>
}

/** A queued Run, as far as its order depends on it. */
export type RunRequest = {
  /** `namespace/name` */
  readonly key: string
  readonly namespace: string
  /** Rank of the priority class; 0 is first ({@link classRank}). */
  readonly rank: number
  /** Within its tenant, higher is first. */
  readonly priority: number
  /** Start of its wait, in milliseconds since the epoch. */
  readonly sinceMs: number
  /** Tie-breaker for Runs of the same second: the resourceVersion at which the Run was first observed. */
  readonly order: number
  /** Last tie-breaker. */
  readonly uid: string
  readonly concurrency: { readonly key: string; readonly limit: number } | undefined
  readonly requirements: Requirements
  /** Equal for Runs with equal requirements. */
  readonly equivalenceKey: string
}

/**
 * What the Run requires under these policies; those of its assignment count if it has a Worker. `spec.resources` of a Stack limits what its Run
 * may use, and is what the Worker must have free.
 */
export function requirementsOf({ pool, policy, stack }: Requested, policies: readonly PolicySource[] = []): Requirements {
  const { engine, placement } = stack
  const { isolation, resources, violations } = applyPolicy(stack, policy ? [{ origin: 'its assignment', policy }] : policies)
  const { level, network } = isolation
  return {
    pool,
    engine,
    engineVersion: placement?.engineVersion,
    labels: placement?.workerLabels ?? {},
    isolation: level === 'Process' ? undefined : level,
    network: level === 'Sandbox' && network === 'Private' ? network : undefined,
    cpuMillis: resources.cpu === undefined ? 0 : quantityMillis(parseQuantity(resources.cpu)),
    memoryBytes: resources.memory === undefined ? 0 : quantityValue(parseQuantity(resources.memory)),
    trustDomain: undefined,
    pod: undefined,
    violation: violations.map(({ field, message }) => `${field}: ${message}`).join('; ') || undefined,
  }
}

/** The request under other policies and in its pool; undefined policies: they are not known, so that no Worker may execute the Run. */
export function withPolicies(
  request: RunRequest,
  requested: Requested,
  policies: readonly PolicySource[] | undefined,
  owner: RunOwner = { pool: undefined, tenant: undefined },
): RunRequest {
  const { namespace } = request
  const known = requirementsOf(requested, policies)
  const { isolation } = known
  const { violation: placeViolation, ...place } = podPlaceOf({
    ...owner,
    namespace,
    isolation,
    requested: requested.stack.serviceAccountName,
  })
  const unknown = policies ? undefined : `the labels of namespace ${namespace}, by which Tenants select it, are not known yet`
  const requirements = { ...known, ...place, violation: unknown ?? known.violation ?? placeViolation }
  return { ...request, requirements, equivalenceKey: equivalenceKeyOf(requirements) }
}

export function requestOf(run: Run, policies: readonly PolicySource[] = []): RunRequest {
  const { metadata, spec } = run
  const { stack } = spec
  const requirements = requirementsOf(spec, policies)
  const { concurrencyKey: key, concurrencyLimit: limit = defaults.concurrencyLimit } = stack
  return {
    key: objectKey(run),
    namespace: metadata.namespace ?? '',
    rank: classRank(run),
    priority: spec.priority,
    sinceMs: Date.parse(spec.queuedSince ?? metadata.creationTimestamp),
    order: Number(metadata.resourceVersion),
    uid: metadata.uid,
    concurrency: key === undefined ? undefined : { key, limit },
    requirements,
    equivalenceKey: equivalenceKeyOf(requirements),
  }
}

function equivalenceKeyOf(requirements: Requirements): string {
  const { pool, engine, engineVersion, labels, isolation, network, cpuMillis, memoryBytes, trustDomain, violation } = requirements
  const labelPairs = Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
  return [pool, engine, engineVersion, isolation, network, cpuMillis, memoryBytes, trustDomain, violation, ...labelPairs].join('\n')
}

/** Reports whether `b` has the same place in the queue as `a`. `order` is ignored: its first value is kept. */
export function isSameRequest(a: RunRequest, b: RunRequest): boolean {
  return (
    a.equivalenceKey === b.equivalenceKey &&
    a.rank === b.rank &&
    a.priority === b.priority &&
    a.sinceMs === b.sinceMs &&
    a.concurrency?.key === b.concurrency?.key &&
    a.concurrency?.limit === b.concurrency?.limit
  )
}
