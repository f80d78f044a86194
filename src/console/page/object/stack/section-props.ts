import type { Action, RunRow, StackRow } from '../../../protocol/index.ts'
import type { RunCauses } from '../next-run.ts'

/** A Stack as its sections read it. It comes from the API server as it is. */
export type StackObject = RunCauses & {
  readonly metadata?: { readonly resourceVersion: string; readonly uid: string; readonly generation: number }
  readonly spec?: RunCauses['spec'] & { readonly interval?: string; readonly engine?: string; readonly state?: string }
  readonly status?: RunCauses['status'] & {
    readonly checkedAt?: string
    /** Of `lastRun`, until another Run follows. */
    readonly handledRequest?: string
    readonly plan?: {
      readonly add: number
      readonly change: number
      readonly destroy: number
      readonly digest: string
      readonly runName: string
    }
    readonly lastRun?: { readonly name: string; readonly phase: string }
  }
}

/** What each section of the page of a Stack gets. */
export type SectionProps = {
  readonly namespace: string
  readonly name: string
  readonly row: StackRow
  readonly object: StackObject
  readonly runs: readonly RunRow[]
  /** Changes when a Run may have changed what the stores have of the Stack: only then is it read again. */
  readonly version: string
  /** Opens the dialog that destroys the Stack. */
  readonly onDestroy: (action: Action) => void
}
