import { hasRegistered, labels, type Worker } from '../../../../api/index.ts'

/** Read by cluster-autoscaler. `true` lets it remove a node although no controller that it knows would create the Pod again. */
const safeToEvict = 'cluster-autoscaler.kubernetes.io/safe-to-evict'
/** On a Worker whose node was cordoned: `spec.cordon` was set because of it, and is removed with it. */
const cordonedWithNode = 'oarlock.dev/cordoned-with-node'
/** A worker that gets its first or the next Run within this time is not marked again. */
const idleAfterMs = 5_000

/** Labels and annotations of the Pod of a worker, by whether the worker may be disrupted. A PodDisruptionBudget selects the label. */
export const disruptionMarks = (isBusy: boolean) => ({
  labels: { [labels.busy]: isBusy ? 'true' : 'false' },
  annotations: { [safeToEvict]: isBusy ? 'false' : 'true' },
})

export type DisruptionInput = {
  /** Labels of the Pod. */
  readonly own: Readonly<Record<string, string>> | undefined
  /** Undefined until it exists. */
  readonly worker: Pick<Worker, 'metadata' | 'spec' | 'status'> | undefined
  /** Runs that are assigned to the worker and have not ended. */
  readonly activeRuns: number
  readonly isNodeCordoned: boolean
  /** For how long it had no Run. */
  readonly idleForMs: number
}

export type DisruptionDecision = {
  /** Merge patch of the Pod. */
  readonly patchPod?: { readonly metadata: ReturnType<typeof disruptionMarks> }
  /** Merge patch of the Worker. */
  readonly patchWorker?: {
    readonly metadata: { readonly annotations: Readonly<Record<string, string | null>> }
    readonly spec: { readonly cordon: true | null }
  }
  readonly requeueAfterMs?: number
}

/**
 * Decides whether the Pod of a worker may be evicted: not while the worker has a Run. A Warm worker on a cordoned node gets no more Runs, because
 * otherwise a drain of the node could wait for one Run after the other.
 */
export function decideDisruption({ own, worker, activeRuns, isNodeCordoned, idleForMs }: DisruptionInput): DisruptionDecision {
  if (!worker || !hasRegistered(worker)) return {}
  const { metadata, spec } = worker
  const wasBusy = own?.[labels.busy] === 'true'
  const isCordonedWithNode = metadata.annotations?.[cordonedWithNode] !== undefined
  const getsRuns = !spec.cordon && !spec.drain
  const patchWorker =
    isNodeCordoned && getsRuns && spec.lifecycle === 'Warm'
      ? cordonPatch(true)
      : !isNodeCordoned && isCordonedWithNode && metadata.deletionTimestamp === undefined
        ? cordonPatch(null)
        : undefined
  // One that gets no more Runs is idle immediately.
  const waitMs = getsRuns && !patchWorker ? idleAfterMs - idleForMs : 0
  const isBusy = activeRuns > 0 || (wasBusy && waitMs > 0)
  return {
    ...(patchWorker && { patchWorker }),
    ...(isBusy !== wasBusy && { patchPod: { metadata: disruptionMarks(isBusy) } }),
    ...(isBusy && activeRuns === 0 && { requeueAfterMs: waitMs }),
  }
}

const cordonPatch = (cordon: true | null) => ({
  metadata: { annotations: { [cordonedWithNode]: cordon && 'true' } },
  spec: { cordon },
})
