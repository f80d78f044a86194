import type { Static } from 'typebox'
import { conditionsSchema, defineResource, type ObjectOf, Type } from '../kube/index.ts'
import { apiGroup, apiVersion } from './names.ts'

const spec = Type.Object({
  mode: Type.Enum(['Process', 'External'], {
    default: 'Process',
    description: 'Process: child processes of the controller. External: workers join by themselves.',
  }),
  lifecycle: Type.Optional(Type.Enum(['OneShot', 'Warm'], { default: 'OneShot', description: 'OneShot: a worker per Run.' })),
  slots: Type.Optional(Type.Integer({ minimum: 1, default: 1, description: 'Runs per worker at once.' })),
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
})

const status = Type.Object({
  observedGeneration: Type.Optional(Type.Integer()),
  conditions: Type.Optional(conditionsSchema),
  queued: Type.Optional(Type.Integer({ description: 'Runs that wait for a worker of this pool.' })),
  busy: Type.Optional(Type.Integer()),
  workers: Type.Optional(Type.Integer({ description: 'Registered workers.' })),
  desired: Type.Optional(Type.Integer({ description: 'clamp(busy + ceil(queued / slots), min, max)' })),
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
    { name: 'Max', jsonPath: '.spec.max', type: 'integer' },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

export type WorkerPoolSpec = Static<typeof spec>
export type WorkerPoolStatus = Static<typeof status>
export type WorkerPool = ObjectOf<typeof workerPoolResource>
