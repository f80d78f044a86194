import type { PlanCounts } from '../../protocol/index.ts'

/** What the page shows of a Run, as the API server has it (`api/run.ts`). */
export type RunObject = {
  readonly metadata?: { readonly creationTimestamp?: string; readonly resourceVersion?: string }
  readonly spec?: {
    readonly revision?: string
    readonly queuedSince?: string
    readonly assignedAt?: string
    readonly planMode?: string
    readonly cancel?: boolean
    readonly recoveredFrom?: string
    readonly priorityClass?: string
    readonly approvedPlan?: { readonly runName: string; readonly user?: string; readonly at?: string }
  }
  readonly status?: {
    readonly phase?: string
    readonly reason?: string
    readonly message?: string
    readonly startedAt?: string
    readonly finishedAt?: string
    readonly phaseSeconds?: Readonly<Partial<Record<'preparing' | 'planning' | 'applying', number>>>
    readonly progress?: { readonly done: number; readonly total: number; readonly current?: string }
    readonly plan?: PlanCounts & { readonly digest: string }
    readonly changed?: boolean
    readonly outputs?: Readonly<Record<string, unknown>>
    readonly resources?: number
    readonly stateVersion?: number
    readonly isolation?: { readonly level: string; readonly network: string }
    readonly usage?: {
      readonly cpuSeconds: number
      readonly peakMemoryBytes: number
      readonly peakPids: number
      readonly peakDiskBytes?: number
    }
    readonly dependencies?: {
      readonly manager: string
      readonly source: 'Cached' | 'Waited' | 'Installed'
      readonly seconds: number
      readonly bytes: number
    }
    readonly providers?: { readonly cached: number; readonly waited: number; readonly downloaded: number; readonly seconds: number }
    readonly supersededBy?: string
    readonly conditions?: readonly unknown[]
    readonly log?: { readonly bytes: number; readonly lines: number; readonly truncated: boolean }
  }
}
