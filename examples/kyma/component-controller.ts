import { type Controller, controller, type Manager, predicates } from '../../src/kubernetes/controller/index.ts'
import { decideStep, leftSeconds } from './decide-step.ts'
import { componentResource } from './kinds.ts'
import type { Renderer } from './renderer.ts'
import type { Settings } from './settings.ts'
import type { Counters } from './stats.ts'

/** Walks each HelmComponent through its steps: one status write each, with a requeue in between instead of a sleeping worker. */
export function componentController(
  manager: Manager,
  settings: Omit<Settings, 'kubeconfig' | 'shards'>,
  counters: Counters,
  renderer?: Renderer,
): Controller {
  return controller({
    name: 'helmcomponent',
    for: componentResource,
    // A component belongs to the replica of its Kyma: both controllers share one cache.
    informer: { sharded: manager.shards && 'owned' },
    // Its own status writes come back as events and need no reconcile: the requeue continues the work.
    predicates: [predicates.generationChanged],
    // Longest remaining work first: the last success comes earlier, and nothing else changes.
    priority: component => (settings.longestFirst ? leftSeconds(component.status?.status, component.spec.componentName) : 0),
    maxConcurrent: settings.workers,
    backoff: settings.backoff,
    resyncMs: settings.resyncMs,
    async reconcile({ object: component, client, signal }) {
      counters.reconciles++
      if (!component || component.metadata.deletionTimestamp) return undefined
      const { componentName } = component.spec
      const decision = decideStep(componentName, component.status, Date.now(), settings.secondMs)
      if (decision.kind === 'done') return undefined
      const priorityAfter = (step: string | undefined) => (settings.longestFirst ? leftSeconds(step, componentName) : 0)
      if (decision.kind === 'wait') return { requeueAfterMs: decision.ms, priority: priorityAfter(component.status?.status) }
      if (decision.step === 'started') renderer?.render(component.spec)
      const { name, namespace, resourceVersion } = component.metadata
      const status = { status: decision.step, lastReconciliation: new Date().toISOString() }
      // With the version that was read: a step can neither be written twice nor skipped because of a stale cache.
      const components = client.resource(componentResource, { managedFields: false })
      await components.patchStatus(name, { status }, { namespace, resourceVersion, signal })
      counters.componentStatusWrites++
      return decision.nextInMs === undefined ? undefined : { requeueAfterMs: decision.nextInMs, priority: priorityAfter(decision.step) }
    },
  })
}
