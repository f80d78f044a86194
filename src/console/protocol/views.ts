import type { ControllerRow, PartitionRow, PlanCounts, PoolRow, RunRow, StackRow, StackState, TenantRow, WorkerRow } from './rows.ts'

/** A view changes at most so often. */
export const deltaIntervalMs = 250
export const defaultPageSize = 50
export const maxPageSize = 500

/** A part of a sorted and filtered table: what is visible, and what is about to be. */
export type TableQuery = {
  /** In the language of `filter.ts`. Default: everything. */
  readonly filter?: string
  /** A field of the row; a `-` before it reverses the order. Default: that of the view. */
  readonly sort?: string
  /** Of the first row. Default 0. */
  readonly offset?: number
  /** Default {@link defaultPageSize}, at most {@link maxPageSize}. */
  readonly limit?: number
}

export type TableKind = 'stacks' | 'runs' | 'queue' | 'workers' | 'pools' | 'tenants' | 'controllers' | 'partitions'

export type ViewQuery =
  | ({ readonly kind: TableKind } & TableQuery)
  | { readonly kind: 'overview' }
  /** One object with what belongs to it. */
  | { readonly kind: 'stack'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'run'; readonly namespace: string; readonly name: string }
  | { readonly kind: 'pool'; readonly name: string }
  /** Series of the last `minutes`: of the fleet, or of one pool. */
  | { readonly kind: 'history'; readonly minutes: number; readonly pool?: string }

export type RowOf = {
  readonly stacks: StackRow
  readonly runs: RunRow
  readonly queue: RunRow
  readonly workers: WorkerRow
  readonly pools: PoolRow
  readonly tenants: TenantRow
  readonly controllers: ControllerRow
  readonly partitions: PartitionRow
}

/** A table without its rows. */
export type TableFacts = {
  /** Rows that match the filter and that the user may see. */
  readonly total: number
  /** Rows that the user may see. */
  readonly all: number
  readonly offset: number
  /** How many rows that match the filter, apart from its terms for this field, have each value. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Why the filter or the order is not valid: the table is empty then. */
  readonly invalid?: string
}

export type OverviewFacts = {
  /** Whether the user may list these in all namespaces. Otherwise what is here is of the namespaces in which the user may. */
  readonly isWhole: { readonly stacks: boolean; readonly runs: boolean }
  readonly stacks: number
  readonly states: Partial<Record<StackState, number>>
  /** All that need a user, and the groups that they are in. */
  readonly needAttention: { readonly stacks: number; readonly groups: number }
  /** What needs a user, the most urgent first; stacks with the same error are one group. At most 50. */
  readonly attention: readonly AttentionGroup[]
  readonly queue: { readonly length: number; readonly oldestMs?: number }
  /** Undefined: the user may not list Workers. */
  readonly workers?: { readonly total: number; readonly busy: number; readonly draining: number }
  /** Runs that began or ended last, the newest first. At most 20. */
  readonly recent: readonly RunRow[]
}

export type AttentionKind = 'Failed' | 'AwaitingApproval' | 'Stuck' | 'Drifted'

export type AttentionGroup = {
  readonly kind: AttentionKind
  readonly reason: string
  /** Of the stack that has had it longest. */
  readonly message: string
  readonly count: number
  readonly sinceMs?: number
  /** The first ten. */
  readonly stacks: readonly { readonly namespace: string; readonly name: string; readonly plan?: PlanCounts }[]
  /** The filter that shows all of them. */
  readonly filter: string
}

/** Names of series. A chart whose series are missing is not shown. */
export const historySeries = [
  'queueLength',
  /** Age of the oldest Run in the queue, in milliseconds. */
  'oldestQueuedMs',
  'activeRuns',
  'workers',
  'busyWorkers',
  /** Runs that ended in the interval. */
  'runsSucceeded',
  'runsFailed',
] as const

/** Series whose values are numbers of an interval: a longer interval has their sum. */
export const intervalSeries = ['runsSucceeded', 'runsFailed'] as const

/** Names of the series of a pool. */
export const poolSeries = ['desired', 'workers', 'busy', 'queued'] as const

/** A pool wanted another number of workers, and the numbers from which that followed. */
export type Scaling = {
  readonly pool: string
  readonly atMs: number
  readonly from: number
  readonly to: number
  readonly min: number
  readonly max: number
  readonly queued: number
  readonly busy: number
}

/** The oldest change first. */
export type PoolHistoryFacts = HistoryFacts & { readonly scalings: readonly Scaling[] }

/** Series over time, by the names of {@link historySeries}, each value the highest of the interval before its time, or the sum for those of {@link intervalSeries}. A missing value is null. */
export type HistoryFacts = {
  /** The length of an interval. */
  readonly everyMs: number
  readonly timesMs: readonly number[]
  readonly series: Readonly<Record<string, readonly (number | null)[]>>
}

/** The pool as its user may read it. */
export type PoolFacts = { readonly row?: PoolRow; readonly object?: unknown }

/** An object as its user may read it, without `managedFields`. `version` is its resourceVersion. */
export type StackFacts = { readonly row?: StackRow; readonly object?: unknown; readonly runs: readonly RunRow[] }
export type RunFacts = {
  readonly row?: RunRow
  readonly object?: unknown
  /** Whether its Worker exists: a one-shot worker exits after its Run. */
  readonly hasWorker: boolean
  /** The Runs that are attempts at the same, with this one, the first attempt first. Empty if there was only one. */
  readonly attempts: readonly RunRow[]
  /** Of an Apply: the Run whose approved plan it applies. */
  readonly planRun?: RunRow
  /** Of a Plan: the Run that applies it. */
  readonly applyRun?: RunRow
}

/** A message of the stream, as JSON in the data of a server-sent event. Its id counts the messages of the stream. */
export type StreamMessage =
  /** The first. `resumed`: the server still has the views, and sends what has changed since. */
  | { readonly type: 'hello'; readonly stream: string; readonly resumed: boolean; readonly serverMs: number }
  | ViewDelta
  /** Every few seconds, so that the page knows that what it shows is current. */
  | { readonly type: 'beat'; readonly serverMs: number }
  /** The session has ended: the page asks the user to sign in. */
  | { readonly type: 'signed-out'; readonly reason: string }

/** What has changed of a view. What is missing is as before; the first delta of a view has everything. */
export type ViewDelta = {
  readonly type: 'view'
  /** As the page has named it. */
  readonly id: string
  /** Whether it replaces everything that the page has of the view. */
  readonly whole: boolean
  /** Of a table: the keys of its rows in their order. */
  readonly order?: readonly string[]
  /** New and changed rows. */
  readonly rows?: readonly { readonly key: string }[]
  readonly facts?: unknown
  /** The user may not see it, or the server cannot read it now. */
  readonly error?: { readonly code: 'Forbidden' | 'Unavailable' | 'NotFound'; readonly message: string }
}
