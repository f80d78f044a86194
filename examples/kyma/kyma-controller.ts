import type { Client } from '../../src/client/index.ts'
import { type Controller, controller, type Manager, type Predicate, patchStatusIfChanged, predicates } from '../../src/controller/index.ts'
import { controllerReference, isReason } from '../../src/kube/index.ts'
import { type ComponentEntry, componentResource, type HelmComponent, type Kyma, kymaResource } from './kinds.ts'
import type { Settings } from './settings.ts'
import type { Counters } from './stats.ts'

const chartVersion = '1.24.0'

/** The owner's status changes when a component becomes a success, stops being one, or goes: the steps in between do not matter. */
const successChanged: Predicate = change => {
  if (change.type === 'added') return true
  const isSuccess = (object: unknown) => (object as HelmComponent).status?.status === 'success'
  return change.type === 'deleted' || isSuccess(change.old) !== isSuccess(change.object)
}

/** Makes one HelmComponent for each component of a Kyma, and tells in the Kyma's status which are not ready. */
export function kymaController(manager: Manager, client: Client, settings: Settings, counters: Counters): Controller {
  const kymas = client.resource(kymaResource)
  const components = client.resource(componentResource)
  const kymaCache = manager.informer(kymaResource)
  const componentCache = manager.informer(componentResource)

  const create = async (kyma: Kyma, { name, namespace }: ComponentEntry, signal: AbortSignal) => {
    const object = {
      metadata: {
        name: `${kyma.metadata.name}-${name}`,
        namespace: kyma.metadata.namespace,
        ownerReferences: [controllerReference(kyma)],
      },
      spec: { componentName: name, chartLocation: `charts/${name}`, version: chartVersion, namespace },
    }
    try {
      componentCache.applyLocal(await components.create(object, { signal }))
      counters.creates++
    } catch (error) {
      // Made by us before, and the cache is behind: the watch brings it.
      if (!isReason(error, 'AlreadyExists')) throw error
      counters.alreadyThere++
    }
  }

  return controller({
    name: 'kyma',
    for: kymaResource,
    predicates: [predicates.generationChanged],
    owns: [{ resource: componentResource, predicate: settings.noPredicates ? undefined : successChanged, delayMs: settings.collectMs }],
    // Each may have 18 creates under way: more of them would only stand in the way of the components' steps.
    maxConcurrent: settings.kymaWorkers,
    backoff: settings.backoff,
    async reconcile({ key, signal }) {
      const kyma = kymaCache.get(key)
      if (!kyma || kyma.metadata.deletionTimestamp) return
      const { name, namespace } = kyma.metadata
      const componentOf = (componentName: string) => componentCache.get(`${namespace}/${name}-${componentName}`)

      const missing = kyma.spec.components.filter(entry => !componentOf(entry.name))
      if (missing.length > 0) {
        if (settings.longestFirst) missing.sort((left, right) => right.name.length - left.name.length)
        await Promise.all(missing.map(entry => create(kyma, entry, signal)))
      }
      const wanted = new Set(kyma.spec.components.map(entry => `${name}-${entry.name}`))
      for (const owned of componentCache.byIndex('owner', key)) {
        if (wanted.has(owned.metadata.name) || owned.metadata.deletionTimestamp) continue
        await components.delete(owned.metadata.name, { namespace, signal })
        counters.deletes++
      }
      const waitingFor = kyma.spec.components.map(entry => entry.name).filter(entry => componentOf(entry)?.status?.status !== 'success')
      const status = { status: waitingFor.length === 0 ? 'success' : 'pending', waitingFor }
      const written = await patchStatusIfChanged(kymas, kyma, status)
      if (written === kyma) return
      counters.kymaStatusWrites++
      kymaCache.applyLocal(written)
      if (status.status === 'success') counters.lastSuccessAt = Date.now()
    },
  })
}

/** The key of the Kyma that a component belongs to. */
export function ownerOf({ metadata }: HelmComponent): string[] {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)
  return owner?.kind === 'Kyma' ? [`${metadata.namespace}/${owner.name}`] : []
}
