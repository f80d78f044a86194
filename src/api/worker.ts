import type { Static } from 'typebox'
import { defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion } from './names.ts'
import { count, isolationLevels, networks, podFields } from './shared.ts'

const specFields = {
  pool: Type.String({ description: 'Name of the WorkerPool that the worker belongs to.' }),
  slots: Type.Integer({ minimum: 1, default: 1, description: 'Maximum number of concurrent Runs.' }),
  lifecycle: Type.Enum(['OneShot', 'Warm'], {
    default: 'OneShot',
    description: 'OneShot: the worker executes one Run per slot and exits. Warm: it executes Runs until it is drained.',
  }),
  start: Type.Optional(
    Type.Boolean({
      description:
        'Requests the start of the worker: by an `oarlock pool` process of its pool, or as the Pod of `pod`. Set by the dispatch controller. Default: false, for a worker that registers itself.',
    }),
  ),
  pod: Type.Optional(
    Type.Object(
      {
        ...podFields,
        serviceAccountName: Type.String({ maxLength: 253, description: 'The ServiceAccount of the Pod.' }),
      },
      {
        description:
          'The Pod of the worker, which has its name, and whose token is its credential. Set by the dispatch controller, which creates both; the worker only adds the UID. Unset: the worker is no Pod of a pool of mode Pod.',
      },
    ),
  ),
  drain: Type.Optional(
    Type.Boolean({
      description:
        'Drains the worker when true: it accepts no new Run, finishes its Runs within the drain grace period, and exits. Default: false.',
    }),
  ),
  cordon: Type.Optional(
    Type.Boolean({
      description: 'When true, the worker is assigned no other Run. It finishes its Runs and does not exit. Default: false.',
    }),
  ),
  run: Type.Optional(
    Type.String({
      maxLength: 507,
      description:
        'The queued Run for which the dispatch controller created the worker, as namespace/name. If it is canceled or gets another worker, the next Run that may gets this one.',
    }),
  ),
  trustDomain: Type.Optional(
    Type.String({
      maxLength: 512,
      description:
        'Only Runs of this trust domain are assigned to the worker. Set by the dispatch controller and never changed: at the creation of a Pod in the namespace of a Stack, and with the first Run of another Pod that executes several. `*`: its first Run did not require isolation level Pod, and no later one may.',
    }),
  ),
}

const spec = Type.Object(specFields, {
  'x-kubernetes-validations': [
    {
      rule: '!has(oldSelf.trustDomain) || (has(self.trustDomain) && self.trustDomain == oldSelf.trustDomain)',
      message: 'trustDomain is immutable once set',
    },
    // A Pod for one Run must not become one for several.
    {
      rule: '!has(oldSelf.pod) || (self.slots == oldSelf.slots && self.lifecycle == oldSelf.lifecycle)',
      message: 'slots and lifecycle of a worker that is a Pod are immutable',
    },
  ],
})

const status = Type.Object(
  {
    phase: Type.Enum(['Pending', 'Starting', 'Ready', 'Busy', 'Draining', 'Failed'], {
      default: 'Pending',
      description:
        'Pending: it has not registered, and no host has claimed it, or its Pod does not run. Starting: a host has claimed it and starts its process. Ready: it has a free slot. Busy: all slots are in use. Draining: it accepts no new Run and will exit. Failed: its process did not start, or ended without deregistering.',
    }),
    reason: Type.Optional(
      Type.String({
        description:
          'Why the worker drains: DrainRequested (spec.drain), Signal, Idle, RunLimitReached, MemoryLimitReached, Fenced. Or why it failed: CreateFailed, CredentialRejected, CrashedOnStartup, RegistrationFailed, WorkerCrashed, WorkerOutOfMemory, WorkerLost (ended from outside after it had registered). Or why its Pod does not start, or has ended: ImagePullFailed, ContainerConfigError, Unschedulable, QuotaExceeded, Evicted, Preempted, NodeLost.',
      }),
    ),
    message: Type.Optional(Type.String({ maxLength: 1_024, description: 'Details of a failure, or why the Pod does not start.' })),
    exitCode: Type.Optional(count('Exit code of a process that failed. Unset if a signal ended it.')),
    agent: Type.Optional(Type.String({ maxLength: 253, description: 'The `oarlock pool` process that claimed the start of the worker.' })),
    idleSince: Type.Optional(
      Type.String({ format: 'date-time', description: 'When its last Run ended, by the clock of the worker. Unset while it has a Run.' }),
    ),
    host: Type.Optional(Type.String({ description: 'Host name of the machine or Pod.' })),
    pid: Type.Optional(count('Process id on that host.')),
    version: Type.Optional(Type.String({ description: 'Oarlock version of the worker.' })),
    engines: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Installed engines and their versions.' })),
    isolation: Type.Optional(
      Type.Array(Type.Enum(isolationLevels), {
        description: 'Isolation levels that the worker supports. Runs that require another level are assigned to other workers.',
      }),
    ),
    networks: Type.Optional(
      Type.Array(Type.Enum(networks), {
        description: 'Networks that the worker can give to Runs of level Sandbox. Unset: unknown, and checked when a Run starts.',
      }),
    ),
    runs: Type.Optional(Type.Array(Type.String(), { description: 'The Runs of the worker, as namespace/name.' })),
    caches: Type.Optional(
      Type.Array(Type.String(), {
        description:
          'Keys of the sources that are cached and of the dependencies that are installed, the most recently used last, at most 64. The dispatcher prefers the worker for Runs that need them.',
      }),
    ),
    unsavedStates: Type.Optional(
      count('Number of states that its host keeps, for a day, because the stores did not accept them. Unset: none.'),
    ),
    capacity: Type.Optional(
      Type.Object(
        { cpu: Type.Optional(Type.String()), memory: Type.Optional(Type.String()) },
        { description: 'Total CPU and memory available to its Runs, as Kubernetes quantities. Default: limited by slots only.' },
      ),
    ),
  },
  { default: { phase: 'Pending' } },
)

/**
 * A worker process. Its heartbeat is the Lease of the same name in oarlock-system (invariant 2). A worker registers itself, or takes over the
 * Worker with which the dispatch controller requested its start (`spec.start`).
 */
export const workerResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Worker',
  plural: 'workers',
  scope: 'Cluster',
  description:
    'Worker is a worker process that executes Runs, or the request to start one. Its heartbeat is the Lease of the same name in oarlock-system.',
  categories: ['oarlock'],
  spec,
  status,
  // The default columns fit into 80 characters (printer-columns.test.ts): the name of a worker that its pool has started begins with that of the pool.
  printerColumns: [
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Reason', jsonPath: '.status.reason' },
    { name: 'Cordon', jsonPath: '.spec.cordon', type: 'boolean' },
    { name: 'Run', jsonPath: '.status.runs[0]' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Pool', jsonPath: '.spec.pool', priority: 1 },
    { name: 'Host', jsonPath: '.status.host', priority: 1 },
    { name: 'For', jsonPath: '.spec.run', priority: 1 },
    { name: 'Namespace', jsonPath: '.spec.pod.namespace', priority: 1 },
    { name: 'Message', jsonPath: '.status.message', priority: 1 },
  ],
})

export type WorkerSpec = Static<typeof spec>
export type WorkerStatus = Static<typeof status>
export type Worker = ObjectOf<typeof workerResource>

/** Reports whether the worker has reported that it accepts Runs, and has not failed since. Only then does it get Runs and count as a worker of its pool. */
export function hasRegistered({ status }: { readonly status?: Pick<WorkerStatus, 'phase'> | undefined }): boolean {
  return status?.phase === 'Ready' || status?.phase === 'Busy' || status?.phase === 'Draining'
}

/**
 * Reports whether the worker is one that a host is to start, or starts, and that has not registered. It has no Lease yet. A server with an
 * older or foreign CRD may accept a Worker without a spec.
 */
export function isStartRequested(worker: {
  readonly spec: WorkerSpec
  readonly status?: Pick<WorkerStatus, 'phase'> | undefined
}): boolean {
  return worker.spec?.start === true && !hasRegistered(worker)
}

/** Reports whether an `oarlock pool` process is to start the worker; {@link isStartRequested} includes Pods, which the dispatch controller creates. */
export function isHostRequested(worker: { readonly spec: WorkerSpec; readonly status?: Pick<WorkerStatus, 'phase'> | undefined }): boolean {
  return isStartRequested(worker) && worker.spec.pod === undefined
}
