import type { Static } from 'typebox'
import { defineResource, type ObjectOf, Type } from '../kubernetes/object/index.ts'
import { apiGroup, apiVersion } from './names.ts'
import { isolationLevels } from './shared.ts'

const spec = Type.Object({
  pool: Type.String(),
  slots: Type.Integer({ minimum: 1, default: 1, description: 'How many Runs it takes at once.' }),
  lifecycle: Type.Enum(['OneShot', 'Warm'], { default: 'OneShot', description: 'OneShot takes one Run for each slot and exits.' }),
  drain: Type.Optional(Type.Boolean({ description: 'True: take no new Run, finish those at work within the grace, exit.' })),
})

const status = Type.Object({
  phase: Type.Enum(['Ready', 'Busy', 'Draining'], { default: 'Ready', description: 'Draining takes no new Run and ends.' }),
  reason: Type.Optional(
    Type.String({ description: 'Why it drains: DrainRequested (spec.drain), Signal, Idle, RunLimitReached, MemoryLimitReached, Fenced.' }),
  ),
  idleSince: Type.Optional(Type.String({ format: 'date-time', description: 'Since when it has had no Run, by its own clock.' })),
  host: Type.Optional(Type.String()),
  pid: Type.Optional(Type.Integer()),
  version: Type.Optional(Type.String({ description: 'Version of Oarlock.' })),
  engines: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Engines found, with their versions.' })),
  isolation: Type.Optional(
    Type.Array(Type.Enum(isolationLevels), { description: 'Levels of isolation that it can give; Runs that need another go elsewhere.' }),
  ),
  runs: Type.Optional(Type.Array(Type.String(), { description: 'namespace/name of the Runs it works on.' })),
  caches: Type.Optional(
    Type.Array(Type.String(), { description: 'Keys of the sources whose dependencies it holds, the newest last, at most 64.' }),
  ),
  capacity: Type.Optional(
    Type.Object(
      { cpu: Type.Optional(Type.String()), memory: Type.Optional(Type.String()) },
      { description: 'What its Runs may use together, as Kubernetes quantities. Default: its slots are the only limit.' },
    ),
  ),
})

/** One registered pair of hands. Its Lease of the same name in oarlock-system is its heartbeat (invariant 2). */
export const workerResource = defineResource({
  group: apiGroup,
  version: apiVersion,
  kind: 'Worker',
  plural: 'workers',
  scope: 'Cluster',
  description: 'One registered pair of hands; its Lease in oarlock-system is its heartbeat.',
  categories: ['oarlock'],
  spec,
  status,
  printerColumns: [
    { name: 'Pool', jsonPath: '.spec.pool' },
    { name: 'Phase', jsonPath: '.status.phase' },
    { name: 'Run', jsonPath: '.status.runs[0]' },
    { name: 'Host', jsonPath: '.status.host', priority: 1 },
    { name: 'Age', jsonPath: '.metadata.creationTimestamp', type: 'date' },
  ],
})

export type WorkerSpec = Static<typeof spec>
export type WorkerStatus = Static<typeof status>
export type Worker = ObjectOf<typeof workerResource>
