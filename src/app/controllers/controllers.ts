/**
 * @module app/controllers: the stack and dispatch controllers as a role. Start reading here; `controller-process.ts` runs them as a process of
 * their own, which installs what an API server lacks (`install.ts`).
 * In: a client, and how workers are started. Out: a manager to start, caches, the queue.
 * Out of scope: what they decide (`controllers/`).
 */
import type { Registry } from 'prom-client'
import { isEnded, type Run, runResource, type Stack, stackResource, type Worker, workerResource } from '../../api/index.ts'
import {
  addDispatchController,
  type Dispatch,
  type PodWorkerOptions,
  type PoolDriver,
  type ReadPendingOperations,
} from '../../controllers/dispatch/index.ts'
import { addStackController, type CheckState, type StateCheckRate } from '../../controllers/stack/index.ts'
import { validateSource } from '../../execution/workspace/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import {
  bucketOf,
  type Informer,
  type LeaseOptions,
  type Log,
  Manager,
  NotLeaderError,
  NotOwnerError,
  type ShardOptions,
} from '../../kubernetes/controller/index.ts'
import { registerUnsavedStates } from '../endpoints/unsaved-states-metric.ts'
import { type SharedWorkersSettings, shareWorkers, workersCluster } from './shared-workers.ts'
import { currentRevision } from './source-revision.ts'
import { registerStackMetrics } from './stack-metrics.ts'

export type ControllersOptions = {
  client: Client
  /** Starts the workers of pools in mode Process. Default: they are requested of `oarlock pool` on other hosts. */
  poolDriver?: PoolDriver | undefined
  /** Settings of the worker Pods of pools in mode Pod. Default: such pools start no workers and report the error. */
  podWorkers?: PodWorkerOptions | undefined
  /** Reads from the stores whether they have the state of a Stack. Default: only the stores check it. */
  checkState?: CheckState | undefined
  /** How often `checkState` is called for idle Stacks. Default: once by each process. */
  stateCheckRate?: StateCheckRate | undefined
  /** Reads from the stores which operations of a Lost Run were interrupted. Default: it does not list them. */
  readPendingOperations?: ReadPendingOperations | undefined
  /** Deletes the states of a deleted Stack. */
  removeStackData(stack: { namespace: string; name: string; uid: string }): Promise<void>
  /** Directories below which Stacks may use `source.path` and file:// repositories. */
  allowPaths: readonly string[]
  /** For the mirrors of git repositories whose revision is resolved here. */
  cacheDir: string
  /** Maximum concurrent Runs over all pools. Default: unlimited. */
  maxRunning?: number | undefined
  /** How long an approval is valid. Default 24 hours. */
  approvalTimeoutMs?: number | undefined
  /** Default: none, for the only controllers of a server. */
  leaderElection?: LeaseOptions | undefined
  /** How several processes share the Stacks. Default: the one that leads works on all of them. Dispatch is led by one process always. */
  shards?: ShardOptions | undefined
  /** In a partition: where the workers of all partitions are. Default: they are on this server, for these controllers only. */
  shared?: SharedWorkersSettings | undefined
  /** Of the host of this process, for the metric. Default: those that workers report. */
  localUnsavedStates?: (() => number) | undefined
  registry: Registry
  log: Log
}

/** The controllers of Oarlock in this process: `start` begins to watch and to decide. */
export type Controllers = {
  readonly manager: Manager
  readonly dispatch: Dispatch
  readonly stacks: Informer<Pick<Stack, 'spec' | 'status'>>
  readonly runs: Informer<Pick<Run, 'spec' | 'status'>>
  readonly workers: Informer<Pick<Worker, 'spec' | 'status'>>
  /** The Runs that are assigned to a worker and have not ended. */
  runsOfWorker(worker: string): readonly Run[]
}

/** Adds the stack and dispatch controllers to a manager of their own. */
export function makeControllers(options: ControllersOptions): Controllers {
  const { client, registry, log, allowPaths, cacheDir } = options
  const clusters = options.shared && { [workersCluster]: options.shared.client }
  const manager = new Manager({ client, clusters, log, registry, leaderElection: options.leaderElection, shards: options.shards })
  const { poolDriver, podWorkers, readPendingOperations, maxRunning } = options
  const shared = options.shared && shareWorkers(options.shared, log)
  const dispatch = addDispatchController(manager, { poolDriver, podWorkers, shared, readPendingOperations, maxRunning, registry, log })
  shared?.follow(manager)
  addStackController(manager, {
    placeNewRun: dispatch.placeNewRun,
    approvalTimeoutMs: options.approvalTimeoutMs,
    checkState: options.checkState,
    stateCheckRate: options.stateCheckRate,
    checkSource: stack => validateSource(stack.spec.source),
    resolveRevision: stack => currentRevision(client, stack, { allowPaths, cacheDir }),
    removeStackData: async stack => {
      // Invariant 7: not a request of the manager's client, which checks it.
      if (manager.shards && !manager.shards.owns(stack.uid)) throw new NotOwnerError(bucketOf(stack.uid))
      if (!manager.shards && !manager.isLeader) throw new NotLeaderError()
      await options.removeStackData(stack)
    },
  })
  const runs = manager.informer(runResource, {
    indexes: { ofWorker: ({ spec, status }) => (spec.workerName && !isEnded({ status }) ? [spec.workerName] : []) },
  })
  const stacks = manager.informer(stackResource)
  // Only the leader reports them: the sum over all processes counts each Stack once.
  registerStackMetrics(registry, () => (manager.isLeader ? stacks.list() : []))
  const workers = manager.informer(workerResource, { cluster: shared?.cluster, selector: shared?.selector })
  // Each worker is counted by the partition that prefers it.
  const counted = () => (shared ? workers.list().filter(shared.isPreferred) : workers.list())
  registerUnsavedStates(registry, { workers: () => (manager.isLeader ? counted() : []), local: options.localUnsavedStates })
  return {
    manager,
    dispatch,
    stacks,
    runs,
    workers,
    runsOfWorker: worker => runs.byIndex('ofWorker', worker),
  }
}
