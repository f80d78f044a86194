import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { planSummary, priorityClasses } from './shared.ts'
import { stackSpecSchema } from './stack.ts'

export const runTypes = ['Plan', 'Apply', 'Destroy', 'Refresh'] as const
export type RunType = (typeof runTypes)[number]

/** In the order a Run goes through them; it never goes back. The last four are ends. */
export const runPhases = ['Queued', 'Assigned', 'Preparing', 'Planning', 'Applying', 'Succeeded', 'Failed', 'Canceled', 'Lost'] as const
export type RunPhase = (typeof runPhases)[number]
export const endedPhases: readonly RunPhase[] = ['Succeeded', 'Failed', 'Canceled', 'Lost']

const spec = Type.Object({
  type: Type.Enum([...runTypes], { description: 'Plan only looks; Apply, Destroy and Refresh may write (invariant 1).' }),
  stackRef: Type.Object({ name: Type.String(), uid: Type.String(), generation: Type.Integer() }),
  epoch: Type.Integer({
    minimum: 1,
    description: 'The number of this Run among those of its Stack. Writes with an older epoch are refused (invariant 3).',
  }),
  stack: stackSpecSchema,
  revision: Type.String({ description: 'The source as resolved when the Run was made: a commit, or a digest of the files.' }),
  inputsDigest: Type.String({ description: 'Changes when the outputs, Secrets or ConfigMaps that feed the variables change.' }),
  reason: Type.String({ description: 'Why this Run was made, such as NewGeneration, SourceChanged, DriftCheck, Retry, RecoveredFrom.' }),
  recoveredFrom: Type.Optional(Type.String({ description: 'The Lost Run that this one continues.' })),
  approvedPlan: Type.Optional(
    Type.Object({ digest: Type.String(), runName: Type.String() }, { description: 'Apply exactly this plan, made by that Run.' }),
  ),
  pool: Type.String({ default: defaults.pool, description: 'The WorkerPool whose Workers may take it.' }),
  priorityClass: Type.Optional(
    Type.Enum([...priorityClasses], { description: 'Its class in the queue; may be changed while it waits. Default: Change.' }),
  ),
  priority: Type.Integer({ default: 0, description: 'Higher starts first among Runs of the same tenant and class.' }),
  queuedSince: Type.Optional(
    Type.String({
      format: 'date-time',
      description: 'When the first of the Runs that this one replaces was queued: its age counts from then. Default: its creation.',
    }),
  ),
  workerName: Type.Optional(Type.String({ description: 'The Worker that has this Run; set once, by dispatch.' })),
  assignedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When it got its Worker; set together with workerName.' })),
  cancel: Type.Optional(Type.Boolean({ description: 'True asks the worker to interrupt the engine and end as Canceled.' })),
  cancelReason: Type.Optional(
    Type.String({ description: 'Why it was canceled, if no person did: Outdated (by spec.onChange: Cancel of its Stack).' }),
  ),
})

const limitKeeper = Type.Enum(['Cgroup', 'Watched', 'NotEnforced'], {
  description: 'Cgroup: the kernel. Watched: the worker looks and ends the Run. NotEnforced: nobody; this machine cannot.',
})

const status = Type.Object({
  phase: Type.Enum([...runPhases], { default: 'Queued' }),
  reason: Type.Optional(Type.String({ description: 'Why it ended or waits, for machines, such as PlanFailed, EngineNotFound, NoWorker.' })),
  message: Type.Optional(Type.String({ description: 'The same for people.' })),
  queuePosition: Type.Optional(
    Type.Integer({
      minimum: 1,
      description:
        'While Queued: about how many Runs of its pool start before it, itself included. Written in steps; "oarlock queue" is exact.',
    }),
  ),
  supersededBy: Type.Optional(Type.String({ description: 'The Run that replaced this one while it waited.' })),
  startedAt: Type.Optional(Type.String({ format: 'date-time' })),
  finishedAt: Type.Optional(Type.String({ format: 'date-time' })),
  progress: Type.Optional(
    Type.Object({
      done: Type.Integer(),
      total: Type.Integer(),
      current: Type.Optional(Type.String({ description: 'What is being worked on.' })),
    }),
  ),
  plan: Type.Optional(Type.Object({ digest: Type.String(), ...planSummary })),
  changed: Type.Optional(Type.Boolean({ description: 'True when the Run changed something.' })),
  outputs: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Outputs that are not secret.' })),
  outputsDigest: Type.Optional(Type.String()),
  resources: Type.Optional(Type.Integer({ description: 'How many resources the Stack manages after this Run.' })),
  retryable: Type.Optional(Type.Boolean({ description: 'False: the same inputs will fail the same way, so do not retry.' })),
  stateVersion: Type.Optional(Type.Integer({ description: 'The newest state version this Run wrote.' })),
  isolation: Type.Optional(
    Type.Object(
      {
        level: Type.String({ description: 'Process, Sandbox or Pod.' }),
        network: Type.String({ description: 'Host or None.' }),
        limits: Type.Optional(
          Type.Object(
            {
              cpu: Type.Optional(limitKeeper),
              memory: Type.Optional(limitKeeper),
              pids: Type.Optional(limitKeeper),
              disk: Type.Optional(limitKeeper),
            },
            { description: 'Who keeps the limits in spec.stack.resources.' },
          ),
        ),
      },
      { description: 'What was in force.' },
    ),
  ),
  usage: Type.Optional(
    Type.Object(
      {
        cpuSeconds: Type.Number({ description: 'User and system time of the engine and all it started.' }),
        peakMemoryBytes: Type.Integer(),
        peakPids: Type.Integer(),
        peakDiskBytes: Type.Optional(Type.Integer({ description: 'Counted when the disk is limited.' })),
      },
      { description: 'What the Run used.' },
    ),
  ),
  log: Type.Optional(Type.Object({ bytes: Type.Integer(), lines: Type.Integer(), truncated: Type.Boolean() })),
  conditions: Type.Optional(conditionsSchema),
})

/** One attempt at a Stack, with its inputs frozen. */
export const runResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Run',
  plural: 'runs',
  scope: 'Namespaced',
  description: 'One attempt at a Stack: a type, frozen inputs, a phase, a result.',
  shortNames: ['run'],
  categories: ['oarlock'],
  spec,
  status,
  selectableFields: ['.spec.workerName', '.status.phase'],
  // What is long comes last: kubectl pads every column but that one.
  printerColumns: [
    { name: 'Stack', jsonPath: '.spec.stackRef.name' },
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Reason', jsonPath: '.status.reason' },
    { name: 'Queue', jsonPath: '.status.queuePosition', type: 'integer', priority: 1 },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Worker', jsonPath: '.spec.workerName', priority: 1 },
    { name: 'Message', jsonPath: '.status.message', priority: 1 },
  ],
})

export type RunSpec = Static<typeof spec>
export type RunStatus = Static<typeof status>
export type Run = ObjectOf<typeof runResource>

/** Runs of these types may write: at most one of them works on a Stack at a time (invariant 1). */
export function isMutating(type: RunType): boolean {
  return type !== 'Plan'
}

/** What a Run was told while it waited is taken back with the first thing that is said of it afterwards. */
export const waitsNoMore = { reason: null, message: null, queuePosition: null } as const

/** True when the Run has reached one of {@link endedPhases}. A Run without a status is Queued. */
export function isEnded(run: Pick<Run, 'status'>): boolean {
  return run.status !== undefined && endedPhases.includes(run.status.phase)
}
