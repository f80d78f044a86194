/** How a state is shown. */
export type Tone = 'good' | 'bad' | 'attention' | 'busy' | 'idle'

export type StackState =
  | 'Pending'
  | 'Working'
  /** A failure that lasts, and that is retried. */
  | 'Failing'
  | 'Ready'
  | 'Drifted'
  | 'AwaitingApproval'
  | 'Failed'
  /** A user has rejected its plan. */
  | 'PlanRejected'
  | 'EngineNotFound'
  | 'Suspended'
  | 'Deleting'

export const stateTones: Readonly<Record<StackState, Tone>> = {
  Pending: 'idle',
  Working: 'busy',
  Failing: 'bad',
  Ready: 'good',
  Drifted: 'attention',
  AwaitingApproval: 'attention',
  Failed: 'bad',
  PlanRejected: 'attention',
  EngineNotFound: 'bad',
  Suspended: 'idle',
  Deleting: 'busy',
}

/** By phase of a Run. */
export const phaseTones: Readonly<Record<string, Tone>> = {
  Queued: 'idle',
  Assigned: 'busy',
  Preparing: 'busy',
  Planning: 'busy',
  Applying: 'busy',
  Succeeded: 'good',
  Failed: 'bad',
  Canceled: 'attention',
  Lost: 'bad',
}

export type PlanCounts = { readonly add: number; readonly change: number; readonly destroy: number }

/** Every row has a key that no other row of its view has. Times are milliseconds since the epoch, durations milliseconds. */
export type StackRow = {
  /** namespace/name */
  readonly key: string
  readonly namespace: string
  readonly name: string
  /** Undefined: the namespace has no Tenant. */
  readonly tenant?: string
  readonly engine: string
  readonly pool: string
  readonly state: StackState
  readonly reason: string
  readonly message: string
  readonly resources?: number
  /** Of the Run that has not ended. */
  readonly activeRun?: string
  readonly phase?: string
  readonly progress?: { readonly done: number; readonly total: number }
  /** That awaits approval. */
  readonly plan?: PlanCounts & { readonly digest: string; readonly runName: string }
  readonly suspended: boolean
  /** It waits for a change by a user, also while it is Deleting. */
  readonly isStalled?: boolean
  readonly labels: Readonly<Record<string, string>>
  readonly createdMs: number
  /** When the last Run ended. */
  readonly finishedMs?: number
  readonly nextRunMs?: number
  /** When the state became what it is. */
  readonly sinceMs?: number
  /** Of the group of the overview that it belongs to, where a filter asks for it; `none` if it needs no user. */
  readonly attention?: string
}

export type RunRow = {
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly stack: string
  /** Rises with each Run of the Stack. */
  readonly epoch: number
  readonly tenant?: string
  readonly engine: string
  readonly type: string
  /** What triggered it. */
  readonly trigger: string
  readonly phase: string
  readonly reason?: string
  readonly message?: string
  readonly pool: string
  readonly worker?: string
  readonly progress?: { readonly done: number; readonly total: number }
  readonly plan?: PlanCounts
  readonly changed?: boolean
  /** The Run whose approved plan it applies. */
  readonly planRun?: string
  readonly queuePosition?: number
  readonly createdMs: number
  readonly startedMs?: number
  readonly finishedMs?: number
}

export type WorkerRow = {
  readonly key: string
  readonly name: string
  readonly pool: string
  readonly phase: string
  readonly reason?: string
  readonly host?: string
  readonly version?: string
  readonly slots: number
  readonly runs: readonly string[]
  readonly cordoned: boolean
  readonly partition?: string
  readonly createdMs: number
}

export type PoolRow = {
  readonly key: string
  readonly name: string
  readonly mode: string
  readonly lifecycle: string
  readonly min: number
  readonly max: number
  readonly desired: number
  readonly workers: number
  readonly busy: number
  readonly queued: number
  readonly ready: boolean
  readonly reason?: string
  readonly message?: string
}

export type TenantRow = {
  readonly key: string
  readonly name: string
  readonly weight: number
  readonly running: number
  readonly maxRunning?: number
  readonly queued: number
  readonly stacks: number
  readonly namespaces: number
  readonly partition?: string
  readonly ready: boolean
  readonly reason?: string
  readonly message?: string
}

/** A Lease, or a controller of the console's own process. */
export type ControllerRow = {
  readonly key: string
  readonly name: string
  /** Empty: no process holds the Lease. */
  readonly holder: string
  readonly renewedMs?: number
  readonly leaseDurationMs?: number
  readonly transitions?: number
  /** Of a member of a ring of sharded controllers: the keys are divided into 1,024 buckets. */
  readonly ring?: string
  readonly buckets?: number
  /** Reconciles since the process started. */
  readonly reconciles?: number
  readonly errors?: number
  readonly queued?: number
  /** Half of the reconciles, and 99 of 100, took no longer. */
  readonly p50Ms?: number
  readonly p99Ms?: number
}

export type PartitionRow = {
  readonly key: string
  readonly name: string
  readonly number: number
  readonly roles: readonly string[]
  readonly server: string
  readonly ready: boolean
  readonly reason?: string
  readonly message?: string
}
