import type { Static } from 'typebox'
import { defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion } from './names.ts'
import { count, isolationLevels, networks } from './shared.ts'

const spec = Type.Object({
  pool: Type.String({ description: 'Name of the WorkerPool that the worker belongs to.' }),
  slots: Type.Integer({ minimum: 1, default: 1, description: 'Maximum number of concurrent Runs.' }),
  lifecycle: Type.Enum(['OneShot', 'Warm'], {
    default: 'OneShot',
    description: 'OneShot: the worker executes one Run per slot and exits. Warm: it executes Runs until it is drained.',
  }),
  start: Type.Optional(
    Type.Boolean({
      description:
        'Requests the start of the worker by an `oarlock pool` process of its pool. Set by the dispatch controller. Default: false, for a worker that registers itself.',
    }),
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
})

const status = Type.Object(
  {
    phase: Type.Enum(['Pending', 'Starting', 'Ready', 'Busy', 'Draining', 'Failed'], {
      default: 'Pending',
      description:
        'Pending: it has not registered, and no host has claimed it. Starting: a host has claimed it and starts its process. Ready: it has a free slot. Busy: all slots are in use. Draining: it accepts no new Run and will exit. Failed: its process did not start, or ended without deregistering.',
    }),
    reason: Type.Optional(
      Type.String({
        description:
          'Why the worker drains: DrainRequested (spec.drain), Signal, Idle, RunLimitReached, MemoryLimitReached, Fenced. Or why it failed: CreateFailed, CredentialRejected, CrashedOnStartup, RegistrationFailed, WorkerCrashed, WorkerOutOfMemory.',
      }),
    ),
    message: Type.Optional(Type.String({ maxLength: 1_024, description: 'Details of a failure.' })),
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
  printerColumns: [
    { name: 'Pool', jsonPath: '.spec.pool' },
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Cordon', jsonPath: '.spec.cordon', type: 'boolean' },
    { name: 'Run', jsonPath: '.status.runs[0]' },
    { name: 'Host', jsonPath: '.status.host' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
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
