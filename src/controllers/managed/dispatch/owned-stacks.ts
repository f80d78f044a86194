import { runResource, type Stack, type StackSpec, stackResource } from '../../../api/index.ts'
import { watching } from '../../../kubernetes/controller/index.ts'
import { controllerReference, type KubeObject, objectKey, type Resource } from '../../../kubernetes/object/index.ts'
import type { ManagedBody } from '../managed-object.ts'
import type { ExternalRequest } from '../managed-options.ts'
import { withoutInputs } from './stack-reads.ts'

type Request<Body> = Pick<ExternalRequest<Body>, 'object' | 'client' | 'signal'>

/** The Stacks of the resources of a kind: their names, and which resource each belongs to. A Run names its Stack only, and its changes reconcile the resource. */
export class OwnedStacks<Body extends ManagedBody> {
  readonly #kind: Resource<Body>
  readonly #stackName: ((object: KubeObject<Body>) => string) | undefined
  readonly #keys = new Map<string, string>()
  readonly #uids = new Map<string, string>()

  /** `stackName`: default `<kind>-<name>`, in lower case. @throws {TypeError} if the kind is cluster-scoped: a Stack has a namespace. */
  constructor(kind: Resource<Body>, stackName: ((object: KubeObject<Body>) => string) | undefined) {
    if (kind.scope !== 'Namespaced')
      throw new TypeError(`kind ${kind.kind} must be Namespaced to be dispatched: its Stack is in its namespace`)
    this.#kind = kind
    this.#stackName = stackName
  }

  /** What reconciles a resource: changes of its Stack, and of Runs for their progress, which the status of the Stack does not have. */
  get sources() {
    const keysOf = ({ spec }: { spec: { stackRef: { uid: string } } }) => {
      const key = this.#keys.get(spec.stackRef.uid)
      return key === undefined ? [] : [key]
    }
    return { owns: [stackResource], watches: [watching(runResource, keysOf, { informer: { transform: withoutInputs }, delayMs: 200 })] }
  }

  nameOf(object: KubeObject<Body>): string {
    return this.#stackName?.(object) ?? `${this.#kind.kind.toLowerCase()}-${object.metadata.name}`
  }

  /** Whatever has the name, also a Stack of someone else. */
  async find({ object, client, signal }: Request<Body>): Promise<Stack | undefined> {
    return await client.resource(stackResource).getOrUndefined(this.nameOf(object), { namespace: object.metadata.namespace, signal })
  }

  /** Not an apply, which would take over a Stack that someone has created meanwhile. */
  async create({ object, client, signal }: Request<Body>, spec: StackSpec, annotations?: Record<string, string>): Promise<Stack> {
    const metadata = {
      ...{ name: this.nameOf(object), namespace: object.metadata.namespace, ownerReferences: [controllerReference(object)] },
      ...(annotations && { annotations }),
    }
    const stack = await client.resource(stackResource).create({ metadata, spec }, { signal })
    this.remember(stack, object)
    return stack
  }

  remember({ metadata }: Stack, object: KubeObject<Body>): void {
    const key = objectKey(object)
    this.#keys.set(metadata.uid, key)
    this.#uids.set(key, metadata.uid)
  }

  /** The resource with this key has no Stack any more. */
  forget(key: string): void {
    const uid = this.#uids.get(key)
    if (uid === undefined) return
    this.#uids.delete(key)
    this.#keys.delete(uid)
  }
}
