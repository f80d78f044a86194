import type { ManagedBody } from '../../../src/controllers/managed/index.ts'
import type { Client } from '../../../src/kubernetes/client/index.ts'
import { findCondition, type KubeObject, type Resource } from '../../../src/kubernetes/object/index.ts'
import { eventually } from '../eventually.ts'

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
