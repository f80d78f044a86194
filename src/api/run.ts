import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults } from './names.ts'
import { pendingOperationsSchema } from './pending-operations.ts'
import { runOptionsSchema } from './run-options.ts'
import { runPolicyFields } from './run-policy.ts'
import { byteCount, count, maxCount, planSummary, podFields, priorityClasses } from './shared.ts'
import { stackSpecSchema } from './stack.ts'

export const runTypes = ['Plan', 'Apply', 'Destroy', 'Refresh'] as const
export type RunType = (typeof runTypes)[number]

/** In the order of the lifecycle; a phase never goes back. The last four are final. */
export const runPhases = ['Queued', 'Assigned', 'Preparing', 'Planning', 'Applying', 'Succeeded', 'Failed', 'Canceled', 'Lost'] as const
export type RunPhase = (typeof runPhases)[number]
export const endedPhases: readonly RunPhase[] = ['Succeeded', 'Failed', 'Canceled', 'Lost']

/** A rule that the field never changes, or, if it is optional, is neither added nor removed. */
const immutable = (field: string, { isOptional = false } = {}) => ({
  rule: isOptional
    ? `has(self.${field}) == has(oldSelf.${field}) && (!has(self.${field}) || self.${field} == oldSelf.${field})`
    : `self.${field} == oldSelf.${field}`,
  message: `${field} is immutable`,
})

/** A rule that the field may be added and then never changes. */
const setOnce = (field: string) => ({
  rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
  message: `${field} is immutable once it is set`,
})

const list = (values: readonly string[]) => `[${values.map(value => `'${value}'`).join(', ')}]`

/** What the identity and the inputs of a Run are. No user may change them, not even an administrator: what was approved and fenced is what is executed. */
const identityRules = [
  immutable('type'),
  immutable('stackRef'),
  immutable('epoch'),
  immutable('stack'),
  immutable('revision'),
  immutable('inputsDigest'),
  immutable('configuration', { isOptional: true }),
  immutable('reason'),
  immutable('pool'),
  immutable('approvedPlan', { isOptional: true }),
  immutable('planMode', { isOptional: true }),
  immutable('options', { isOptional: true }),
  immutable('recoveredFrom', { isOptional: true }),
  immutable('queuedSince', { isOptional: true }),
  immutable('stateVersion', { isOptional: true }),
  immutable('dependencyDigest', { isOptional: true }),
  setOnce('workerName'),
  setOnce('assignedAt'),
  // Only with the assignment: what was required when the Run got its worker is not lowered.
  {
    rule: `!has(oldSelf.workerName) || (has(self.policy) == has(oldSelf.policy) && (!has(self.policy) || self.policy == oldSelf.policy))`,
    message: 'policy is immutable once the Run has a worker',
  },
  // What the worker shares between Runs was shared within this Tenant.
  {
    rule: `!has(oldSelf.workerName) || (has(self.tenant) == has(oldSelf.tenant) && (!has(self.tenant) || self.tenant == oldSelf.tenant))`,
    message: 'tenant is immutable once the Run has a worker',
  },
  // Another Pod of the worker's name must not be taken for it.
  {
    rule: `!has(oldSelf.workerName) || (has(self.workerPod) == has(oldSelf.workerPod) && (!has(self.workerPod) || self.workerPod == oldSelf.workerPod))`,
    message: 'workerPod is immutable once the Run has a worker',
  },
]

const ranks = `{${runPhases.map((phase, index) => `'${phase}': ${index}`).join(', ')}}`

const phaseRules = [
  {
    rule: `!(oldSelf.phase in ${list(endedPhases)}) || self == oldSelf`,
    messageExpression: `"the Run has ended: its status is final, with phase " + oldSelf.phase`,
    message: 'the status of a Run that has ended is final',
  },
  {
    // A map, because kube-apiserver estimates the cost of indexOf as if phases were 3 MB long.
    rule: `${ranks}[self.phase] >= ${ranks}[oldSelf.phase]`,
    messageExpression: `"a phase never goes back, from " + oldSelf.phase + " to " + self.phase`,
    message: 'a phase never goes back',
  },
]

const spec = Type.Object(
  {
    type: Type.Enum([...runTypes], {
      description: 'Plan is read-only; Apply, Destroy and Refresh write state, and at most one of them is active per Stack (invariant 1).',
    }),
    planMode: Type.Optional(
      Type.Enum(['Destroy', 'Refresh'], {
        description:
          'Of a Plan. Destroy: it plans the destruction of all resources. Refresh: it plans a refresh of the state. Default: the changes of an Apply.',
      }),
    ),
    options: Type.Optional(runOptionsSchema),
    stackRef: Type.Object(
      {
        name: Type.String({ description: 'Name of the Stack.' }),
        uid: Type.String({ description: 'UID of the Stack.' }),
        generation: count('Generation of the Stack whose spec is frozen in spec.stack.'),
      },
      { description: 'The Stack that the Run belongs to.' },
    ),
    epoch: Type.Integer({
      minimum: 1,
      maximum: maxCount,
      description: 'Sequence number of the Run within its Stack. Writes with an older epoch are rejected (invariant 3).',
    }),
    stack: stackSpecSchema,
    revision: Type.String({ description: 'Revision of the source when the Run was created: a commit, or a digest of the files.' }),
    inputsDigest: Type.String({
      description: 'Digest of the outputs, Secrets and ConfigMaps that the variables and the environment refer to.',
    }),
    configuration: Type.Optional(
      Type.Enum(['Applied'], {
        description:
          'Of a Destroy, or the plan of one. Applied: with the source and inputs that an Apply of the Stack used last, as the state store has kept them. Secret values are read again. Default: as spec.stack and revision name them.',
      }),
    ),
    reason: Type.String({
      description: 'What triggered the Run (column TRIGGER), such as NewGeneration, SourceChanged, DriftCheck, Retry, RecoveredFrom.',
    }),
    recoveredFrom: Type.Optional(Type.String({ description: 'Name of the lost Run that this one continues.' })),
    approvedPlan: Type.Optional(
      Type.Object(
        {
          digest: Type.String({ description: 'Digest of the plan.' }),
          runName: Type.String({ description: 'Name of the Run that created the plan.' }),
          user: Type.Optional(Type.String({ description: 'The user who approved it.' })),
          at: Type.Optional(Type.String({ format: 'date-time', description: 'When it was approved.' })),
          expiresAt: Type.Optional(
            Type.String({
              format: 'date-time',
              description: 'The Run does not apply it later than this. Default: the approval does not expire.',
            }),
          ),
        },
        { description: 'The approved plan, which an Apply executes unchanged.' },
      ),
    ),
    stateVersion: Type.Optional(
      count('The state has at least this version, or the state store rejects the Run. Default: the Stack may have no state.'),
    ),
    dependencyDigest: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description:
          'Digest of the dependencies that the last Run of the Stack used. Workers whose host has them installed are preferred. Default: the Stack has installed none.',
      }),
    ),
    pool: Type.String({ default: defaults.pool, description: 'Name of the WorkerPool whose workers may execute the Run.' }),
    priorityClass: Type.Optional(
      Type.Enum([...priorityClasses], {
        description: 'Priority class in the queue. It can be changed while the Run is queued. Default: Change.',
      }),
    ),
    priority: Type.Integer({
      default: 0,
      minimum: -1000,
      maximum: 1000,
      description: 'Priority among queued Runs of the same tenant and class; the highest starts first.',
    }),
    queuedSince: Type.Optional(
      Type.String({
        format: 'date-time',
        description:
          'When the first Run that this one supersedes was queued; the waiting time counts from then. Default: the creation time of the Run.',
      }),
    ),
    workerName: Type.Optional(
      Type.String({ description: 'Name of the Worker that the Run is assigned to. It is set once, by the dispatcher.' }),
    ),
    workerPod: Type.Optional(
      Type.Object(
        { ...podFields },
        {
          description:
            'The Pod of the Worker, which has its name. Only with a token of this Pod can the Worker write the status and the state of the Run. Set with workerName. Unset: the Worker is no Pod that a controller created.',
        },
      ),
    ),
    assignedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the Run was assigned to its Worker.' })),
    policy: Type.Optional(
      Type.Object(runPolicyFields, {
        description:
          'What the Tenant and the WorkerPool required when the Run was assigned to its Worker, which enforces it. Set once, by the dispatcher.',
      }),
    ),
    tenant: Type.Optional(
      Type.Object(
        {
          name: Type.String({ maxLength: 253, description: 'Name of the Tenant.' }),
          uid: Type.String({ maxLength: 64, pattern: '^[0-9A-Za-z-]+$', description: 'UID of the Tenant.' }),
        },
        {
          description:
            'The Tenant of the namespace when the Run was assigned to its Worker, which shares caches between Runs of one Tenant only. Set once, by the dispatcher. Default: the namespace has no Tenant, and the Worker shares caches between Runs of the namespace only.',
        },
      ),
    ),
    cancel: Type.Optional(
      Type.Boolean({
        description: 'Cancels the Run when true: the worker interrupts the engine, and the Run ends in phase Canceled. Default: false.',
      }),
    ),
    cancelReason: Type.Optional(
      Type.String({
        description:
          'Why the controller canceled the Run: Outdated (the Stack or its inputs changed) or StackDeleted. Unset when a user canceled it.',
      }),
    ),
  },
  { 'x-kubernetes-validations': identityRules },
)

const limitEnforcement = Type.Enum(['Cgroup', 'Watched', 'NotEnforced'], {
  description:
    'How the limit is enforced. Cgroup: by the kernel. Watched: the worker measures usage and ends the Run. NotEnforced: the machine supports neither.',
})

const status = Type.Object(
  {
    phase: Type.Enum([...runPhases], {
      default: 'Queued',
      description: 'Current phase. Succeeded, Failed, Canceled and Lost (its worker was lost) are final.',
    }),
    reason: Type.Optional(
      Type.String({
        description: 'Machine-readable reason why the Run ended or is queued, such as PlanFailed, EngineNotFound, NoWorkerAvailable.',
      }),
    ),
    message: Type.Optional(Type.String({ description: 'Human-readable explanation of the reason.' })),
    queuePosition: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Approximate position in the queue of the pool, starting at 1, while the phase is Queued. "oarlock queue" shows the exact position.',
      }),
    ),
    supersededBy: Type.Optional(Type.String({ description: 'Name of the Run that superseded this one while it was queued.' })),
    startedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the worker started the Run.' })),
    finishedAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the Run ended.' })),
    phaseSeconds: Type.Optional(
      Type.Object(
        {
          preparing: Type.Optional(
            Type.Number({ minimum: 0, description: 'With the source, the dependencies and the init of the engine.' }),
          ),
          planning: Type.Optional(Type.Number({ minimum: 0, description: 'Until the plan was there.' })),
          applying: Type.Optional(Type.Number({ minimum: 0, description: 'Until the engine had ended and its state was saved.' })),
        },
        { description: 'Durations of the phases that have ended, in seconds, measured by the worker. The first begins at `startedAt`.' },
      ),
    ),
    progress: Type.Optional(
      Type.Object(
        {
          done: count('Number of finished resources.'),
          total: count('Number of resources that the plan creates, updates or deletes.'),
          current: Type.Optional(Type.String({ description: 'The resource in progress.' })),
        },
        { description: 'Progress of the engine, while it reports any.' },
      ),
    ),
    plan: Type.Optional(
      Type.Object(
        { digest: Type.String({ description: 'Digest of the plan.' }), ...planSummary },
        { description: 'The plan that the Run created.' },
      ),
    ),
    changed: Type.Optional(Type.Boolean({ description: 'True when the plan contains changes, or when the Run changed something.' })),
    outputs: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'Outputs that are not secret, after the Run.' })),
    outputsDigest: Type.Optional(Type.String({ description: 'Digest of all outputs, including secret ones.' })),
    resources: Type.Optional(count('Number of resources that the Stack manages after the Run.')),
    retryable: Type.Optional(
      Type.Boolean({ description: 'False when the same inputs would fail the same way, so that the Run is not retried. Default: true.' }),
    ),
    stateVersion: Type.Optional(count('Number of the newest state version that the Run stored.')),
    isolation: Type.Optional(
      Type.Object(
        {
          level: Type.String({ description: 'Isolation level: Process, Sandbox or Pod.' }),
          network: Type.String({ description: 'Network of the engine: Private, Host or None.' }),
          processTracking: Type.Optional(
            Type.String({
              description:
                'By what processes that left their process group are found at the end of the Run: PidNamespace, Cgroup, ResourceLimit or Environment. See docs/isolation.md.',
            }),
          ),
          limits: Type.Optional(
            Type.Object(
              {
                cpu: Type.Optional(limitEnforcement),
                memory: Type.Optional(limitEnforcement),
                pids: Type.Optional(limitEnforcement),
                disk: Type.Optional(limitEnforcement),
              },
              { description: 'How each limit of spec.stack.resources is enforced.' },
            ),
          ),
        },
        { description: 'Isolation in effect during the Run.' },
      ),
    ),
    usage: Type.Optional(
      Type.Object(
        {
          cpuSeconds: Type.Number({ description: 'User and system CPU time of the engine and its child processes, in seconds.' }),
          peakMemoryBytes: byteCount(
            'Highest memory usage, in bytes. 0: not measured, because the programs ended before the first sample.',
          ),
          peakPids: count('Highest number of processes.'),
          peakDiskBytes: Type.Optional(byteCount('Highest disk usage, in bytes. Measured only when the disk is limited.')),
        },
        { description: 'Resource usage of the Run.' },
      ),
    ),
    dependencies: Type.Optional(
      Type.Object(
        {
          digest: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'Digest of everything that the packages depend on.' }),
          manager: Type.String({ maxLength: 32, description: 'The package manager, such as npm.' }),
          source: Type.Enum(['Cached', 'Waited', 'Installed'], {
            description: 'Cached: the host had them. Waited: another Run installed them meanwhile. Installed: by this Run.',
          }),
          seconds: Type.Number({ minimum: 0, description: 'Time until the programs of the Run could use them, in seconds.' }),
          installSeconds: Type.Number({ minimum: 0, description: 'Duration of the install, by this Run or an earlier one, in seconds.' }),
          bytes: byteCount('Size on disk, in bytes.'),
        },
        { description: 'Packages that the program of the Stack needs. Unset: it has none.' },
      ),
    ),
    providers: Type.Optional(
      Type.Object(
        {
          cached: count('Number that the provider cache of the host had.'),
          waited: count('Number that another Run downloaded into the cache while this one waited.'),
          downloaded: count('Number that this Run downloaded.'),
          downloadedBytes: byteCount('Size of those that this Run downloaded, in bytes.'),
          seconds: Type.Number({
            minimum: 0,
            description: 'Time that the Run spent on the cache, with its waits and its downloads into it, in seconds.',
          }),
          downloadSeconds: Type.Number({
            minimum: 0,
            description:
              'Sum of the durations of all these downloads, by this Run or an earlier one, in seconds. One that was not measured counts as 0.',
          }),
        },
        {
          description:
            'Providers of Terraform or OpenTofu, or plugins of Pulumi, that the Run got by the provider cache. Unset: it has none.',
        },
      ),
    ),
    pendingOperations: Type.Optional(pendingOperationsSchema),
    log: Type.Optional(
      Type.Object(
        {
          bytes: byteCount('Size of the log, in bytes.'),
          lines: count('Number of lines in the log.'),
          truncated: Type.Boolean({ description: 'True when the log reached its size limit and later lines were dropped.' }),
        },
        { description: 'The log of the Run.' },
      ),
    ),
    conditions: Type.Optional(conditionsSchema),
  },
  // Clients and field selectors find the phase of a Run whose status was not written yet.
  { default: { phase: 'Queued' }, 'x-kubernetes-validations': phaseRules },
)

/** One execution of a Stack with frozen inputs. */
export const runResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Run',
  plural: 'runs',
  scope: 'Namespaced',
  description: 'Run is one execution of a Stack with frozen inputs. Its status contains the phase and the result.',
  shortNames: ['run'],
  categories: ['oarlock'],
  spec,
  status,
  selectableFields: ['.spec.workerName', '.status.phase'],
  // The default columns fit into 80 characters (printer-columns.test.ts): the name begins with that of the Stack.
  // The longest column is last, because kubectl pads every other column.
  printerColumns: [
    { name: 'Type', jsonPath: '.spec.type' },
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Reason', jsonPath: '.status.reason' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Stack', jsonPath: '.spec.stackRef.name', priority: 1 },
    { name: 'Trigger', jsonPath: '.spec.reason', priority: 1 },
    { name: 'Queue', jsonPath: '.status.queuePosition', type: 'integer', priority: 1 },
    { name: 'Worker', jsonPath: '.spec.workerName', priority: 1 },
    { name: 'Options', jsonPath: '.spec.options', priority: 1 },
    { name: 'Message', jsonPath: '.status.message', priority: 1 },
  ],
})

export type RunSpec = Static<typeof spec>
/** The Pod that a Worker is, without its ServiceAccount. */
export type WorkerPod = NonNullable<RunSpec['workerPod']>
export type RunStatus = Static<typeof status>
export type Run = ObjectOf<typeof runResource>

/** True for Run types that may write: at most one such Run of a subject is active at a time (invariant 1). */
export function isMutating(type: RunType): boolean {
  return type !== 'Plan'
}

/** Reasons of Lost Runs whose worker crashed while it executed no other Run. */
export const crashReasons = ['WorkerCrashed', 'WorkerOutOfMemory'] as const
export type CrashReason = (typeof crashReasons)[number]

/** A status patch that removes what was reported while the Run was queued; part of the first status write after that. */
export const clearedPendingStatus = { reason: null, message: null, queuePosition: null } as const

/**
 * The phase to show. A Run without a status is Queued, and one that has a worker is Assigned at least: dispatch does not write that phase for a worker
 * that soon writes the next one.
 */
export function phaseOf({
  spec,
  status,
}: {
  readonly spec: Pick<RunSpec, 'workerName'>
  readonly status?: Pick<RunStatus, 'phase'> | undefined
}): RunPhase {
  const phase = status?.phase ?? 'Queued'
  return phase === 'Queued' && spec.workerName !== undefined ? 'Assigned' : phase
}

/** True when the Run has reached one of {@link endedPhases}. A Run without a status is Queued. */
export function isEnded(run: Pick<Run, 'status'>): boolean {
  return run.status !== undefined && endedPhases.includes(run.status.phase)
}
