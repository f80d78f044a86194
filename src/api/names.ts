export const apiGroup = 'oarlock.dev'
export const apiVersion = 'v1alpha1'

/** Where Oarlock keeps what belongs to no user: Leases of workers and controllers. */
export const systemNamespace = 'oarlock-system'

export const labels = {
  /** On a Run: the name of its Stack. */
  stack: 'oarlock.dev/stack',
  /** On a Worker and its Lease: the name of its WorkerPool. */
  pool: 'oarlock.dev/pool',
} as const

export const annotations = {
  /** On a Stack: the digest of the plan a person approved. Ignored, with a message, when that plan is not the latest. */
  approvedPlan: 'oarlock.dev/approved-plan',
  /** On a Stack: who approved, for the record. */
  approvedBy: 'oarlock.dev/approved-by',
  /** On a Stack: any new value asks for a Run now; `plan:<id>` for a Plan, `apply:<id>` for an Apply, `refresh:<id>` for a Refresh. */
  requestedRun: 'oarlock.dev/requested-run',
} as const

/** What a field that was left out means. Kept beside the schemas, so that both say the same. */
export const defaults = {
  pool: 'default',
  timeout: '1h',
  retryLimit: 5,
  retryInitial: '5s',
  retryMax: '10m',
  historyLimit: 5,
  sourceInterval: '1m',
  /** At most so many Runs with the same `concurrencyKey` at once. */
  concurrencyLimit: 1,
  tenantWeight: 1,
  /** After so long half of what a tenant used is forgotten, and weighs no more in whose turn it is. */
  fairShareHalfLifeMs: 15 * 60_000,
  /** How long a worker that drains lets its Runs go on before it interrupts them. */
  drainGrace: '10m',
  /** How long a worker that nobody needs stays: a new Run may come, and starting one costs time. */
  warmIdleTimeout: '5m',
  oneShotIdleTimeout: '1m',
  /** How long an observer waits, by its own monotonic clock, before a Lease that does not change is expired (invariant 2). */
  leaseDurationMs: 10_000,
} as const

/** The Secret with all outputs of a Stack, and its type. */
export const outputsSecretName = (stack: string): string => `${stack}-outputs`
export const outputsSecretType = 'oarlock.dev/outputs'
