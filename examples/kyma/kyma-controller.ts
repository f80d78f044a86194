import type { ResourceClient } from '../../src/kubernetes/client/index.ts'
import {
  type Controller,
  controller,
  type Manager,
  type Predicate,
  patchStatusIfChanged,
  predicates,
} from '../../src/kubernetes/controller/index.ts'
import { controllerReference, isReason, objectKey } from '../../src/kubernetes/index.ts'
import { leftSeconds } from './decide-step.ts'
import { type ComponentEntry, componentResource, type HelmComponent, type Kyma, kymaResource } from './kinds.ts'
import type { Settings } from './settings.ts'
import type { Counters } from './stats.ts'

const chartVersion = '1.24.0'

type Components = ResourceClient<Pick<HelmComponent, 'spec' | 'status'>>

/** The owner's status changes when a component becomes successful, stops being so, or is deleted; intermediate steps do not matter. */
const successChanged: Predicate = change => {
  if (change.type === 'added') return true
  const isSuccess = (object: unknown) => (object as HelmComponent).status?.status === 'success'
  return change.type === 'deleted' || isSuccess(change.old) !== isSuccess(change.object)
}

/**
 * Creates one HelmComponent for each component of a Kyma, and lists in the Kyma's status which are not ready. Of several replicas that share the Kymas
 * each has the components of its own Kymas in its cache: the client of the reconcile labels them with the bucket of the Kyma.
 */
export function kymaController(manager: Manager, settings: Omit<Settings, 'kubeconfig' | 'shards'>, counters: Counters): Controller {
  const componentCache = manager.informer(componentResource, { sharded: manager.shards && 'owned' })

  /** Time of the last status write of a pending Kyma, by key; removed when it is no longer pending, and when another replica takes it over. */
  const reportedAtMs = new Map<string, number>()
  manager.informer(kymaResource, { sharded: manager.shards && 'root' }).onChange({ deleted: kyma => reportedAtMs.delete(objectKey(kyma)) })

  const create = async (components: Components, kyma: Kyma, { name, namespace }: ComponentEntry, signal: AbortSignal) => {
    const object = {
      metadata: {
        name: `${kyma.metadata.name}-${name}`,
        namespace: kyma.metadata.namespace,
        ownerReferences: [controllerReference(kyma)],
      },
      spec: { componentName: name, chartLocation: `charts/${name}`, version: chartVersion, namespace },
    }
    try {
      await components.create(object, { signal })
      counters.creates++
    } catch (error) {
      // Created by us earlier and not yet in the cache: the watch will deliver it.
      if (!isReason(error, 'AlreadyExists')) throw error
      counters.alreadyThere++
    }
  }

  return controller({
    name: 'kyma',
    for: kymaResource,
    predicates: [predicates.generationChanged],
    owns: [{ resource: componentResource, predicate: settings.noPredicates ? undefined : successChanged, delayMs: settings.collectMs }],
    // Creates compete with the components' steps, which are equally urgent.
    maxConcurrent: settings.kymaWorkers,
    backoff: settings.backoff,
    resyncMs: settings.resyncMs,
    // Kymas whose missing components take longest come first; those that only need a status write come last.
    priority: kyma => (settings.longestFirst ? longest(kyma.spec.components) : 0),
    async reconcile({ key, object: kyma, client, signal }) {
      counters.reconciles++
      if (!kyma || kyma.metadata.deletionTimestamp) return undefined
      const kymas = client.resource(kymaResource, { managedFields: false })
      const components = client.resource(componentResource, { managedFields: false })
      const { name, namespace } = kyma.metadata
      const { components: wanted } = kyma.spec
      const keyOf = (entry: ComponentEntry) => `${namespace}/${name}-${entry.name}`

      const missing = wanted.filter(entry => !componentCache.has(keyOf(entry)))
      if (settings.longestFirst) missing.sort((left, right) => right.name.length - left.name.length)
      await Promise.all(missing.splice(0, settings.createsAtOnce).map(entry => create(components, kyma, entry, signal)))
      // The rest later, so that the slow components of every Kyma start before the quick ones of any.
      if (missing.length > 0) return { requeueAfterMs: 0, priority: settings.longestFirst ? longest(missing) : 0 }

      const keys = new Set(wanted.map(keyOf))
      for (const owned of componentCache.indexKeys('owner', key)) {
        if (keys.has(owned)) continue
        const component = componentCache.get(owned)
        if (!component || component.metadata.deletionTimestamp) continue
        await components.delete(component.metadata.name, { namespace, signal })
        counters.deletes++
      }

      const succeeded = new Set(componentCache.indexKeys('succeeded', key))
      const waitingFor = wanted.filter(entry => !succeeded.has(keyOf(entry))).map(entry => entry.name)
      const isWaiting = waitingFor.length > 0
      // Progress is reported at intervals, however many components finish in between; completion immediately.
      const holdMs = isWaiting ? (reportedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) + settings.progressMs - performance.now() : 0
      if (holdMs > 0) return { requeueAfterMs: holdMs }
      if (isWaiting) reportedAtMs.set(key, performance.now())
      else reportedAtMs.delete(key)
      const status = { status: isWaiting ? 'pending' : 'success', waitingFor }
      const written = await patchStatusIfChanged(kymas, kyma, status)
      if (written !== kyma) {
        counters.kymaStatusWrites++
        if (status.status === 'success') counters.lastSuccessAt = Date.now()
      }
      return undefined
    },
  })
}

/** Seconds that the slowest of these components needs. */
function longest(components: readonly ComponentEntry[]): number {
  return Math.max(0, ...components.map(({ name }) => leftSeconds(undefined, name)))
}

/** The key of the Kyma that a component belongs to. */
export function ownerOf({ metadata }: HelmComponent): string[] {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  return owner?.kind === 'Kyma' ? [`${metadata.namespace}/${owner.name}`] : []
}

/** The same for a component that is installed. */
export function succeededOf(component: HelmComponent): string[] {
  return component.status?.status === 'success' ? ownerOf(component) : []
}
