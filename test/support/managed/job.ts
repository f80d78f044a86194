/** A kind whose external resource is dispatched: the Stack of a Job runs a script, and another one when it is deleted. */
import type { StackSpec } from '../../../src/api/index.ts'
import { dispatchToStack, managed, managedSpec, managedStatus, type StackDispatchOptions } from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { defineResource, type KubeObject, type Resource, Type } from '../../../src/kubernetes/object/index.ts'
import { type Provider, startProvider } from './provider.ts'

export const jobResource = defineResource({
  group: 'work.example',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  scope: 'Namespaced',
  description: 'A script that a worker executes.',
  spec: managedSpec(
    Type.Object({
      script: Type.String(),
      destroy: Type.Optional(Type.String()),
      pool: Type.Optional(Type.String()),
    }),
  ),
  status: managedStatus(Type.Object({ size: Type.Optional(Type.Integer()) })),
  printerColumns: [
    { name: 'Synced', jsonPath: '.status.conditions[?(@.type=="Synced")].status' },
    { name: 'Ready', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Reason', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Run', jsonPath: '.status.run.name' },
    { name: 'Phase', jsonPath: '.status.run.phase' },
    { name: 'Progress', jsonPath: '.status.run.progress.current' },
  ],
})

export type JobBody = typeof jobResource extends Resource<infer Body> ? Body : never
export type Job = KubeObject<JobBody>

const source = { inline: { files: { 'job.txt': 'a job\n' } } }
const shell = (script: string) => ['sh', '-c', script]

export const jobStack = ({ spec }: Pick<Job, 'spec'>): StackSpec => ({
  engine: 'command',
  source,
  command: { apply: shell(spec.forProvider.script), destroy: shell(spec.forProvider.destroy ?? 'true') },
  retry: { limit: 0 },
  ...(spec.forProvider.pool && { pool: spec.forProvider.pool }),
})

/** A provider of Jobs in this process, until the end of the scope. */
export async function startJobProvider(client: Client, options: Partial<StackDispatchOptions<JobBody>> = {}): Promise<Provider> {
  return await startProvider(client, () =>
    managed(
      dispatchToStack<JobBody>({
        kind: jobResource,
        stack: ({ object }) => jobStack(object),
        atProvider: ({ status }) => (typeof status?.outputs?.size === 'number' ? { size: status.outputs.size } : undefined),
        connectionDetails: ({ password }) => (typeof password === 'string' ? { password } : undefined),
        backoff: { baseDelayMs: 50, maxDelayMs: 500 },
        ...options,
      }),
    ),
  )
}
