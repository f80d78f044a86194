import { approvalPolicyOf, isEnded, type Run, recordedEpoch, runResource, type Stack, stackResource, subjectOf } from '../../api/index.ts'
import { type Client, type NamespaceBody, namespaceResource } from '../../kubernetes/client/index.ts'
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
  /** The Stacks that this process works on. */
  readonly stacks: Informer<StackBody>
  readonly resolveRevision: (stack: Stack) => Promise<string>
  readonly checkSource: (stack: Stack) => StatusCause[]
  readonly onRevisionResolved: (stack: Stack) => void
  readonly nowMs: () => number
  readonly approvalTimeoutMs: number
}

/** Reads the input of a decision: the Stack, its Runs, related Stacks, Secrets and ConfigMaps from caches, and the source's revision. */
export class InputReader {
  /** All Stacks: those that this process works on depend on others. */
  readonly #stacks: Informer<StackBody>
  readonly #runs: Informer<RunBody>
  readonly #secrets: Informer<KeyDigests>
  readonly #configMaps: Informer<KeyDigests>
  readonly #namespaces: Informer<NamespaceBody>
  readonly #revisions: RevisionCache
  readonly #options: InputReaderOptions

  constructor(manager: Manager, options: InputReaderOptions) {
    this.#options = options
    const indexes = {
      dependsOn: (stack: KubeObject<StackBody>) => dependencyNames(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
      namespace: ({ metadata }: KubeObject<StackBody>) => [metadata.namespace ?? ''],
      referencedInputs: (stack: KubeObject<StackBody>) => referencedInputs(stack.spec).map(name => `${stack.metadata.namespace}/${name}`),
    }
    this.#stacks = manager.informer(stackResource, { indexes })
    this.#runs = manager.informer(runResource, { indexes: { stack: run => [stackKey(run.metadata.namespace, subjectOf(run).uid)] } })
    this.#secrets = manager.informer(secretResource, { transform: withoutValues })
    this.#configMaps = manager.informer(configMapResource, { transform: withoutValues })
    this.#namespaces = manager.informer(namespaceResource)
    const { resolveRevision, onRevisionResolved, nowMs } = options
    this.#revisions = new RevisionCache({ resolve: resolveRevision, onResolved: onRevisionResolved, nowMs })
    options.stacks.onChange({ deleted: ({ metadata }) => this.#revisions.delete(metadata.uid) })
  }

  /** @returns `recheckAfterMs`: when the revision must be resolved again. */
  async read(stack: Stack, client: Client): Promise<{ input: StackInput; recheckAfterMs: number | undefined }> {
    const { namespace = '', name, uid } = stack.metadata
    const stackNamed = (other: string) => this.#stacks.get(`${namespace}/${other}`)
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
      runs: await this.#runsOf(stack, client),
      dependencies: dependencyNames(stack.spec).map(other => ({ name: other, stack: stackNamed(other) })),
      dependents: this.#stacks.byIndex('dependsOn', objectKey(stack)).map(({ metadata }) => metadata.name),
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
    const dependents = this.#stacks.byIndex('dependsOn', objectKey(stack)).map(objectKey)
    return [...dependents, ...dependencyNames(stack.spec).map(name => `${namespace}/${name}`)]
  }

  /** Keys of the Stacks in a namespace. */
  stacksIn({ metadata }: KubeObject<NamespaceBody>): string[] {
    return this.#stacks.byIndex('namespace', metadata.name).map(objectKey)
  }

  /** Keys of the Stacks whose variables or environment reference a Secret or a ConfigMap. */
  usersOf(kind: 'secret' | 'configMap', { metadata }: KubeObject<KeyDigests>): string[] {
    return this.#stacks.byIndex('referencedInputs', `${metadata.namespace}/${kind}/${metadata.name}`).map(objectKey)
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
   * The Stack's Runs, at least as new as its status: one cache may lag behind the other, most often when another process has just worked on the Stack.
   * Where the status shows that, they are read from the server. A Run mistaken for deleted would get a second active one (invariant 1), and the end of one
   * mistaken for active would be recorded twice.
   */
  async #runsOf(stack: Stack, client: Client): Promise<Run[]> {
    const { uid, namespace } = stack.metadata
    const cached = this.#runs.byIndex('stack', stackKey(namespace, uid))
    const names = outdatedRuns(stack, cached)
    if (names.length === 0) return cached
    const handle = client.resource(runResource)
    const read = await Promise.all(names.map(name => handle.getOrUndefined(name, { namespace })))
    const live = read.filter(run => run !== undefined && subjectOf(run).uid === uid) as Run[]
    for (const run of live) this.#runs.applyLocal(run)
    return [...cached.filter(run => !names.includes(run.metadata.name)), ...live]
  }
}

/** Names of the Runs of which the status of their Stack knows more than the cache. Pure. */
export function outdatedRuns({ status }: Pick<Stack, 'status'>, cached: readonly Run[]): string[] {
  const recorded = recordedEpoch(status)
  const outdated = cached.filter(run => run.spec.epoch <= recorded && !isEnded(run)).map(run => run.metadata.name)
  const { lastRun } = status ?? {}
  const isActive = lastRun !== undefined && !isEnded({ status: { phase: lastRun.phase } } as Run)
  return isActive && !cached.some(run => run.metadata.name === lastRun.name) ? [...outdated, lastRun.name] : outdated
}
