import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion, defaults, systemNamespace } from './names.ts'
import { duration, quantity } from './shared.ts'

export const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const

const clockTime = (description: string) => Type.String({ pattern: '^([01][0-9]|2[0-3]):[0-5][0-9]$', description })

const window = Type.Object({
  days: Type.Optional(
    Type.Array(Type.Enum([...weekdays]), { minItems: 1, description: 'Days on which the window begins. Default: every day.' }),
  ),
  from: clockTime('When it begins, such as `07:00`.'),
  to: clockTime('When it ends. Not later than `from`: on the next day.'),
  timeZone: Type.Optional(
    Type.String({ minLength: 1, default: 'UTC', description: 'IANA name such as Europe/Berlin; summer time is followed.' }),
  ),
  min: Type.Integer({ minimum: 0, description: 'Workers kept in the window. The largest of all open windows and `min` counts.' }),
})

const template = Type.Object(
  {
    metadata: Type.Optional(
      Type.Object({
        labels: Type.Optional(Type.Record(Type.String(), Type.String())),
        annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
      }),
    ),
    spec: Type.Record(Type.String(), Type.Unknown(), {
      description: 'A PodSpec. The container `worker`, or else the first, gets the OARLOCK_ environment; restartPolicy is always Never.',
    }),
  },
  { description: 'For mode Pod: what each worker Pod is made from.' },
)

const spec = Type.Object({
  mode: Type.Enum(['Process', 'Pod', 'External'], {
    default: 'Process',
    description: 'Process: child processes of the controller. Pod: a Pod per worker. External: workers join by themselves.',
  }),
  lifecycle: Type.Optional(
    Type.Enum(['OneShot', 'Warm'], { default: 'OneShot', description: 'OneShot: a worker per Run. Warm: one Run after the other.' }),
  ),
  slots: Type.Optional(Type.Integer({ minimum: 1, maximum: 64, default: 1, description: 'Runs per worker at once.' })),
  min: Type.Optional(Type.Integer({ minimum: 0, default: 0, description: 'Workers kept even when nothing is queued.' })),
  max: Type.Optional(Type.Integer({ minimum: 0, default: 4, description: 'Never more workers than this.' })),
  limits: Type.Optional(
    Type.Object(
      {
        maxRunning: Type.Optional(
          Type.Integer({ minimum: 0, description: 'Never more Runs at once, however many its workers could take.' }),
        ),
      },
      { description: 'Default: what its workers can take.' },
    ),
  ),
  schedule: Type.Optional(Type.Array(window, { maxItems: 16, description: 'Times at which more workers are kept than `min`.' })),
  idleTimeout: Type.Optional(
    duration({
      description: 'An idle worker beyond those that are needed is drained after so long. Default: 5m for Warm, 1m for OneShot.',
    }),
  ),
  recycle: Type.Optional(
    Type.Object(
      {
        afterRuns: Type.Optional(Type.Integer({ minimum: 1, description: 'A Warm worker ends after so many Runs.' })),
        aboveMemory: Type.Optional(
          quantity({ description: 'A Warm worker that holds more memory itself, between Runs, ends; such as 512Mi.' }),
        ),
      },
      { description: 'When a Warm worker makes place for a fresh one.' },
    ),
  ),
  drainGrace: Type.Optional(
    duration({
      default: defaults.drainGrace,
      description: 'How long the Runs of a worker that drains may go on before they are interrupted.',
    }),
  ),
  startTimeout: Type.Optional(
    duration({
      description: 'A worker that has not registered so long after its start has failed. Default: 30s for Process, 10m for Pod.',
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
          'Variables of the worker’s own environment that engines get: names, or prefixes followed by `*`, such as `AWS_*`. Default: none. OARLOCK_*, HOME and TMPDIR are never passed. See docs/isolation.md.',
      },
    ),
  ),
  namespace: Type.Optional(Type.String({ minLength: 1, default: systemNamespace, description: 'For mode Pod: where the Pods are made.' })),
  template: Type.Optional(template),
})

const status = Type.Object({
  observedGeneration: Type.Optional(Type.Integer()),
  conditions: Type.Optional(conditionsSchema),
  queued: Type.Optional(Type.Integer({ description: 'Runs that wait for a worker of this pool.' })),
  busy: Type.Optional(Type.Integer({ description: 'Workers with a Run.' })),
  starting: Type.Optional(Type.Integer({ description: 'Workers that were started and have not registered.' })),
  workers: Type.Optional(Type.Integer({ description: 'Registered workers.' })),
  desired: Type.Optional(Type.Integer({ description: 'clamp(busy + ceil(queued / slots), min, max)' })),
  started: Type.Optional(Type.Integer({ description: 'Number of the newest worker Pod; it is part of its name and never used again.' })),
})

/** Where hands come from. */
export const workerPoolResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'WorkerPool',
  plural: 'workerpools',
  scope: 'Cluster',
  description: 'Where hands come from: how workers are started, how many, and for how long.',
  shortNames: ['pool'],
  categories: ['oarlock'],
  spec,
  status,
  printerColumns: [
    { name: 'Mode', jsonPath: '.spec.mode' },
    { name: 'Queued', jsonPath: '.status.queued', type: 'integer' },
    { name: 'Busy', jsonPath: '.status.busy', type: 'integer' },
    { name: 'Workers', jsonPath: '.status.workers', type: 'integer' },
    { name: 'Desired', jsonPath: '.status.desired', type: 'integer' },
    { name: 'Max', jsonPath: '.spec.max', type: 'integer' },
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

export type WorkerPoolSpec = Static<typeof spec>
export type PoolWindow = Static<typeof window>
export type WorkerPoolStatus = Static<typeof status>
export type WorkerPool = ObjectOf<typeof workerPoolResource>
