import type { RunPolicy, RunSpec } from '../../api/index.ts'

/**
 * Decides where a Run that is about to be created is executed, as dispatch does. With a placement the Run is created on its worker, with these
 * finalizers and fields of the spec, and `settle` is called when the creation has ended; undefined: the Run is created without a worker and queued.
 */
export type PlaceNewRun = (run: { readonly namespace: string; readonly name: string; readonly spec: RunSpec }) => RunPlacement | undefined

export type RunPlacement = {
  readonly finalizers: readonly string[]
  readonly workerName: string
  readonly workerPod?: RunSpec['workerPod']
  readonly assignedAt: string
  readonly policy: RunPolicy
  readonly tenant?: RunSpec['tenant']
  settle(isCreated: boolean): void
}
