import { approvalPolicyOf, isEnded, type Run, runResource, type Stack, stackResource, subjectOf } from '../../api/index.ts'
import { type NamespaceBody, namespaceResource } from '../../kubernetes/client/index.ts'
import type { Informer, Manager } from '../../kubernetes/controller/index.ts'
import { describeResource, type KubeObject, objectKey, type Resource, type StatusCause } from '../../kubernetes/object/index.ts'
import type { StackInput } from './decision.ts'
import { dependencyNames, findCycle } from './dependencies.ts'
import { pendingRequest } from './facts.ts'
import { type KeyDigests, referencedInputs, resolveInputs, withoutValues } from './inputs-digest.ts'
import { jitterOf } from './jitter.ts'
import { RevisionCache } from './revision-cache.ts'
import { specErrors } from './spec-errors.ts'
import type { RunBody, StackBody } from './watch-predicates.ts'

/** How long a reconcile waits for the revision of a source; a slower lookup triggers another reconcile. */
const lookupTimeoutMs = 20

const core = { group: '', version: 'v1', scope: 'Namespaced' } as const
export const secretResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'Secret', plural: 'secrets' })
export const configMapResource: Resource<KeyDigests> = describeResource({ ...core, kind: 'ConfigMap', plural: 'configmaps' })

/** Not the UID alone: a Run in another namespace is no Run of this Stack. */
const stackKey = (namespace = '', uid: string) => `${namespace}/${uid}`

export type InputReaderOptions = {
  readonly resolveRevision: (stack: Stack) => Promise<string>
  readonly checkSource: (stack: Stack) => StatusCause[]
  readonly onRevisionResolved: (stack: Stack) => void
  readonly nowMs: () => number
  readonly approvalTimeoutMs: number
}

/** Reads the input of a decision: the Stack, its Runs, related Stacks, Secrets and ConfigMaps from caches, and the source's revision. */
export class InputReader {
  readonly stacks: Informer<StackBody>
  readonly #runs: Informer<RunBody>
  readonly #secrets: Informer<KeyDigests>
  readonly #configMaps: Informer<KeyDigests>
  readonly #namespaces: Informer<NamespaceBody>
  readonly #revisions: RevisionCache
  readonly #manager: Manager
  readonly #options: InputReaderOptions

  constructor(manager: Manager, options: InputReaderOptions) {
    this.#manager = manager
    this.#options = options
    const indexes = {
      dependsOn: (stack: KubeObject<StackBody>) => dependencyNames(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
      namespace: ({ metadata }: KubeObject<StackBody>) => [metadata.namespace ?? ''],
      referencedInputs: (stack: KubeObject<StackBody>) => referencedInputs(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
    }
    this.stacks = manager.informer(stackResource, { indexes })
    this.#runs = manager.informer(runResource, { indexes: { stack: run => [stackKey(run.metadata.namespace, subjectOf(run).uid)] } })
    this.#secrets = manager.informer(secretResource, { transform: withoutValues })
    this.#configMaps = manager.informer(configMapResource, { transform: withoutValues })
    this.#namespaces = manager.informer(namespaceResource)
    const { resolveRevision, onRevisionResolved, nowMs } = options
    this.#revisions = new RevisionCache({ resolve: resolveRevision, onResolved: onRevisionResolved, nowMs })
    this.stacks.onChange({ deleted: ({ metadata }) => this.#revisions.delete(metadata.uid) })
  }

  /** `recheckAfterMs`: when the revision must be resolved again. */
  async read(stack: Stack): Promise<{ input: StackInput; recheckAfterMs: number | undefined }> {
    const { namespace = '', name, uid } = stack.metadata
    const stackNamed = (other: string) => this.stacks.get(`${namespace}/${other}`)
    const inputs = resolveInputs(
      stack.spec,
      {
        secret: other => this.#secrets.get(`${namespace}/${other}`),
        configMap: other => this.#configMaps.get(`${namespace}/${other}`),
        stack: stackNamed,
      },
      namespace,
    )
    const causes = [...specErrors(stack.spec), ...this.#options.checkSource(stack)]
    const { revision, recheckAfterMs } =
      causes.length > 0 ? { revision: undefined, recheckAfterMs: undefined } : await this.#revisionOf(stack)
    const input: StackInput = {
      stack,
      runs: await this.#runsOf(stack),
      dependencies: dependencyNames(stack.spec).map(other => ({ name: other, stack: stackNamed(other) })),
      dependents: this.stacks.byIndex('dependsOn', objectKey(stack)).map(({ metadata }) => metadata.name),
      cycle: findCycle(name, other => stackNamed(other)?.spec),
      specErrors: causes,
      inputErrors: inputs.errors,
      revision,
      inputsDigest: inputs.digest,
      nowMs: this.#options.nowMs(),
      approvalPolicy: approvalPolicyOf(this.#namespaces.get(namespace)?.metadata.labels),
      approvalTimeoutMs: this.#options.approvalTimeoutMs,
      jitter: jitterOf(uid),
    }
    return { input, recheckAfterMs }
  }

  /** Keys of the Stacks that depend on `stack` and of those that it depends on. */
  relatedStacks(stack: KubeObject<StackBody>): string[] {
    const { namespace } = stack.metadata
    const dependents = this.stacks.byIndex('dependsOn', objectKey(stack)).map(objectKey)
    return [...dependents, ...dependencyNames(stack.spec).map(name => `${namespace}/${name}`)]
  }

  /** Keys of the Stacks in a namespace. */
  stacksIn({ metadata }: KubeObject<NamespaceBody>): string[] {
    return this.stacks.byIndex('namespace', metadata.name).map(objectKey)
  }

  /** Keys of the Stacks whose variables or environment reference a Secret or a ConfigMap. */
  usersOf(kind: 'secret' | 'configMap', { metadata }: KubeObject<KeyDigests>): string[] {
    return this.stacks.byIndex('referencedInputs', `${metadata.namespace}/${kind}/${metadata.name}`).map(objectKey)
  }

  async #revisionOf(stack: Stack): Promise<ReturnType<RevisionCache['get']>> {
    const get = () => this.#revisions.get(stack, pendingRequest(stack, stack.status ?? {})?.value)
    const cached = get()
    if (cached.revision !== undefined) return cached
    // An inline source is resolved within this time, which saves a status write with reason ResolvingSource.
    await this.#revisions.waitForLookup(stack.metadata.uid, lookupTimeoutMs)
    return get()
  }

  /**
   * The Stack's Runs. If the active one that the status names is not in the cache, it is read from the server: one cache may
   * lag behind the other, and a Run mistaken for deleted would get a second active one (invariant 1).
   */
  async #runsOf(stack: Stack): Promise<Run[]> {
    const { uid, namespace } = stack.metadata
    const runs = this.#runs.byIndex('stack', stackKey(namespace, uid))
    const { lastRun } = stack.status ?? {}
    if (!lastRun || isEnded({ status: { phase: lastRun.phase } } as Run) || runs.some(run => run.metadata.name === lastRun.name))
      return runs
    const live = await this.#manager.leaderClient.resource(runResource).getOrUndefined(lastRun.name, { namespace })
    if (!live || subjectOf(live).uid !== uid) return runs
    this.#runs.applyLocal(live)
    return [...runs, live]
  }
}
