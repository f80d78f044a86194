import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults, systemNamespace } from './names.ts'
import { type RunPolicy, runPolicyFields, runPolicyRules } from './run-policy.ts'
import { count, duration, quantity } from './shared.ts'

export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const

const clockTime = (description: string) => Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description })

const window = Type.Object({
  days: Type.Optional(
    Type.Array(Type.Enum([...weekdays]), { minItems: 1, description: 'Days on which the window starts. Default: every day.' }),
  ),
  from: clockTime('Time of day at which the window starts, such as `07:00`.'),
  to: clockTime('Time of day at which the window ends. If it is not later than `from`, the window ends on the next day.'),
  timeZone: Type.Optional(
    Type.String({ minLength: 1, default: 'UTC', description: 'IANA time zone such as Europe/Berlin, including daylight saving time.' }),
  ),
  min: Type.Integer({
    minimum: 0,
    description: 'Minimum number of workers during the window. The effective minimum is the largest of spec.min and all active windows.',
  }),
})

const template = Type.Object(
  {
    metadata: Type.Optional(
      Type.Object({
        labels: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Labels of the Pods.' })),
        annotations: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Annotations of the Pods.' })),
      }),
    ),
    spec: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'A PodSpec. The container named `worker`, or the first one, receives the OARLOCK_ environment variables. restartPolicy is always Never.',
    }),
  },
  { description: 'Template of the worker Pods, for mode Pod.' },
)

const spec = Type.Object(
  {
    mode: Type.Enum(['Process', 'Pod', 'External'], {
      default: 'Process',
      description:
        'How workers are started. Process: processes on the host of `oarlock up`, or on hosts that run `oarlock pool`. Pod: one Pod per worker. External: workers are started elsewhere and join with a token.',
    }),
    lifecycle: Type.Optional(
      Type.Enum(['OneShot', 'Warm'], {
        description:
          'OneShot: a worker executes one Run per slot and exits. Warm: a worker executes Runs one after another. Default: OneShot, and Warm for workers that join with a token.',
      }),
    ),
    slots: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 64, default: 1, description: 'Maximum number of concurrent Runs per worker.' }),
    ),
    min: Type.Optional(
      Type.Integer({ minimum: 0, default: 0, description: 'Minimum number of workers, kept even when no Run is queued.' }),
    ),
    max: Type.Optional(Type.Integer({ minimum: 0, default: defaults.poolMax, description: 'Maximum number of workers.' })),
    limits: Type.Optional(
      Type.Object(
        {
          maxRunning: Type.Optional(
            Type.Integer({
              minimum: 0,
              description: 'Maximum number of concurrent Runs in the pool, regardless of the number of workers. Default: no limit.',
            }),
          ),
        },
        { description: 'Limits of the pool.' },
      ),
    ),
    schedule: Type.Optional(Type.Array(window, { maxItems: 16, description: 'Time windows with a higher minimum number of workers.' })),
    idleTimeout: Type.Optional(
      duration({
        description: 'How long a worker above the desired number may be idle before it is drained. Default: 5m for Warm, 1m for OneShot.',
      }),
    ),
    recycle: Type.Optional(
      Type.Object(
        {
          afterRuns: Type.Optional(
            Type.Integer({ minimum: 1, description: 'Number of Runs after which a Warm worker is replaced. Default: no limit.' }),
          ),
          aboveMemory: Type.Optional(
            quantity({
              description: 'Memory of the worker process between Runs, such as 512Mi, above which it is replaced. Default: no limit.',
            }),
          ),
        },
        { description: 'When a Warm worker is drained and replaced by a new one.' },
      ),
    ),
    drainGrace: Type.Optional(
      duration({
        default: defaults.drainGrace,
        description: 'How long a draining worker waits for its Runs before it interrupts them.',
      }),
    ),
    startTimeout: Type.Optional(
      duration({
        description:
          'How long a started worker may take to register before its start counts as failed. Default: 30s for Process, 10m for Pod.',
      }),
    ),
    engineEnvironment: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[A-Za-z_][A-Za-z0-9_]*\\*?$',
          maxLength: 128,
          'x-kubernetes-validations': [
            {
              rule: "!self.startsWith('OARLOCK_') && self != 'HOME' && self != 'TMPDIR'",
              message: 'must not select HOME, TMPDIR or OARLOCK_*, which are never passed to engines',
            },
          ],
        }),
        {
          maxItems: 64,
          'x-kubernetes-list-type': 'set',
          description:
            'Environment variables of the worker that are passed to engines: names, or prefixes followed by `*`, such as `AWS_*`. OARLOCK_*, HOME and TMPDIR are never passed. Default: none. See docs/isolation.md.',
        },
      ),
    ),
    ...runPolicyFields,
    namespace: Type.Optional(
      Type.String({ minLength: 1, default: systemNamespace, description: 'Namespace of the worker Pods, for mode Pod.' }),
    ),
    podNamespace: Type.Optional(
      Type.Enum(['Pool', 'Stack'], {
        default: 'Pool',
        description:
          'Where the worker Pods are, for mode Pod. Pool: in `namespace`. Stack: each Pod is created for a Run, in the namespace of its Stack and with the ServiceAccount that the Stack names in `serviceAccountName`; for lifecycle OneShot with one slot and without a minimum.',
      }),
    ),
    template: Type.Optional(template),
  },
  {
    'x-kubernetes-validations': [
      ...runPolicyRules,
      {
        rule: "!has(self.podNamespace) || self.podNamespace != 'Stack' || (self.mode == 'Pod' && (!has(self.lifecycle) || self.lifecycle == 'OneShot') && (!has(self.slots) || self.slots == 1))",
        message: 'podNamespace Stack requires mode Pod, lifecycle OneShot and slots 1',
      },
      {
        rule: "!has(self.podNamespace) || self.podNamespace != 'Stack' || ((!has(self.min) || self.min == 0) && !has(self.schedule))",
        message: 'podNamespace Stack allows neither min nor schedule: a Pod is created for a Run',
      },
    ],
  },
)

const demand = Type.Object(
  {
    queued: count('Number of queued Runs.'),
    startable: count('Number of queued Runs that would start if the pool had enough workers; up to what its largest size can execute.'),
    reportedAt: Type.String({
      format: 'date-time',
      description: 'When it was reported. A report that is not renewed for 3 minutes is removed.',
    }),
  },
  { description: 'Runs of one partition that wait for workers of the pool.' },
)

const status = Type.Object({
  observedGeneration: Type.Optional(count('The generation of the spec that this status describes.')),
  conditions: Type.Optional(conditionsSchema),
  queued: Type.Optional(count('Number of queued Runs of the pool.')),
  busy: Type.Optional(count('Number of workers that have a Run.')),
  demand: Type.Optional(
    Type.Record(Type.String(), demand, {
      description:
        'Where API servers are split into partitions: the queued Runs of each other partition, by its name, as its controllers report them to home. They are included in `queued`, and in `desired`.',
    }),
  ),
  starting: Type.Optional(count('Number of workers that were started and have not registered yet.')),
  workers: Type.Optional(count('Number of registered workers.')),
  desired: Type.Optional(count('Desired number of workers: busy + ceil(queued / slots), at least min and at most max.')),
  problem: Type.Optional(
    Type.String({
      maxLength: 1_024,
      description:
        'Why workers cannot be started, in short: the reason of condition Ready, after the namespace if only the Pods of a namespace do not start, such as `shop: QuotaExceeded`. Unset: they can be started.',
    }),
  ),
  outdated: Type.Optional(
    count(
      'Number of workers whose Pod was created from another template than the present one, for mode Pod and lifecycle Warm. `oarlock drain --pool NAME` replaces them.',
    ),
  ),
  started: Type.Optional(
    count(
      'The highest number that was claimed for a worker that is a Pod or is requested of another host. It is part of its name and is never used again; in a long queue numbers are claimed in advance.',
    ),
  ),
})

/** A group of workers with its sizing rules. */
export const workerPoolResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'WorkerPool',
  plural: 'workerpools',
  scope: 'Cluster',
  description: 'WorkerPool configures how workers are started, how many there are, and how long they live.',
  shortNames: ['pool'],
  categories: ['oarlock'],
  spec,
  status,
  printerColumns: [
    { name: 'Queued', jsonPath: '.status.queued', type: 'integer' },
    { name: 'Busy', jsonPath: '.status.busy', type: 'integer' },
    { name: 'Workers', jsonPath: '.status.workers', type: 'integer' },
    { name: 'Max', jsonPath: '.spec.max', type: 'integer' },
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
    { name: 'Problem', jsonPath: '.status.problem' },
    { name: 'Mode', jsonPath: '.spec.mode', priority: 1 },
    { name: 'Desired', jsonPath: '.status.desired', type: 'integer', priority: 1 },
    { name: 'Outdated', jsonPath: '.status.outdated', type: 'integer', priority: 1 },
    { name: 'Message', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
})

export type WorkerPoolSpec = Static<typeof spec>
export type PoolWindow = Static<typeof window>
export type WorkerPoolStatus = Static<typeof status>
export type ReportedPoolDemand = Static<typeof demand>
export type WorkerPool = ObjectOf<typeof workerPoolResource>

/** Whether a worker of the pool executes at most one Run, so that nothing of it is left for another. */
export const isExclusive = ({ lifecycle = 'OneShot', slots = 1 }: Pick<WorkerPoolSpec, 'lifecycle' | 'slots'>): boolean =>
  lifecycle === 'OneShot' && slots === 1

/** What the pool requires of its Runs. */
export function poolPolicy({ minimumIsolation, allowedNetworks = ['Private', 'None'], maxResources }: WorkerPoolSpec): RunPolicy {
  return { ...(minimumIsolation && { minimumIsolation }), allowedNetworks, ...(maxResources && { maxResources }) }
}
