/** A kind whose external resource is dispatched: the Stack of a Job runs a script, and another one when it is deleted. */
import type { StackSpec } from '../../../src/api/index.ts'
import {
  dispatchToStack,
  type ManagedBody,
  managed,
  managedSpec,
  managedStatus,
  type StackDispatchOptions,
} from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../../src/kubernetes/controller/index.ts'
import { defineResource, findCondition, type KubeObject, type Resource, Type } from '../../../src/kubernetes/object/index.ts'
import { eventually } from '../eventually.ts'

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
      retries: Type.Optional(Type.Integer()),
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
  retry: { limit: spec.forProvider.retries ?? 0, initial: '1s' },
  ...(spec.forProvider.pool && { pool: spec.forProvider.pool }),
})

export type Provider = AsyncDisposable & { stop(): Promise<void> }

/** A provider of Jobs in this process, until the end of the scope. */
export async function startJobProvider(client: Client, options: Partial<StackDispatchOptions<JobBody>> = {}): Promise<Provider> {
  const manager = new Manager({ client, log: silentLog })
  manager.add(
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
  await manager.start()
  const stop = () => manager.stop({ graceMs: 2_000 })
  return { stop, [Symbol.asyncDispose]: stop }
}

/** Creates, changes and awaits objects of one kind with fields of managed resources. */
export class ManagedObjects<Body extends ManagedBody> {
  readonly handle
  readonly namespace: string

  constructor(client: Client, resource: Resource<Body>, namespace = 'default') {
    this.handle = client.resource(resource)
    this.namespace = namespace
  }

  async get(name: string): Promise<KubeObject<Body>> {
    return await this.handle.get(name, { namespace: this.namespace })
  }

  async patch(name: string, change: object): Promise<KubeObject<Body>> {
    return await this.handle.patch(name, change, { type: 'merge', namespace: this.namespace })
  }

  async annotate(name: string, values: Record<string, string | null>): Promise<KubeObject<Body>> {
    return await this.patch(name, { metadata: { annotations: values } })
  }

  /** Waits for the reason of a condition, and text in its message. */
  async until(name: string, type: 'Ready' | 'Synced', reason: string, text = ''): Promise<KubeObject<Body>> {
    let last: KubeObject<Body> | undefined
    const check = async () => {
      last = await this.get(name)
      const condition = findCondition(last.status?.conditions, type)
      return condition?.reason === reason && condition.message.includes(text) ? last : undefined
    }
    try {
      return await eventually(check, `${name} to have ${type} ${reason}`, 40_000)
    } catch (error) {
      throw new Error(`${(error as Error).message}; it has ${JSON.stringify(last?.status, null, 1)}`)
    }
  }

  async untilGone(name: string): Promise<void> {
    const check = async () => (await this.handle.getOrUndefined(name, { namespace: this.namespace })) === undefined
    await eventually(check, `${name} to be deleted`, 40_000)
  }
}
