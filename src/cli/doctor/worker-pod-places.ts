import { podAccountName, type Stack, stackResource, systemNamespace, type WorkerPool, workerPoolResource } from '../../api/index.ts'
import { clusterChecks } from '../../app/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'

/** Where Pods of workers are created, outside of what `oarlock manifests` installs. */
export type WorkerPodPlace = {
  readonly namespace: string
  readonly account: string
  /** The Runs that they execute. */
  readonly runs: 'all' | 'own'
}

/** The places of the pools of mode Pod: their own namespace, or with `podNamespace: Stack` those of the Stacks that use them. */
export function workerPodPlaces(
  pools: readonly Pick<WorkerPool, 'metadata' | 'spec'>[],
  stacks: readonly Pick<Stack, 'metadata' | 'spec'>[],
): readonly WorkerPodPlace[] {
  const places = pools.flatMap(({ metadata: { name }, spec }): WorkerPodPlace[] => {
    if (spec.mode !== 'Pod') return []
    const own = accountOf(spec.template)
    if (spec.podNamespace !== 'Stack')
      return spec.namespace === undefined || spec.namespace === systemNamespace
        ? []
        : [{ namespace: spec.namespace, account: own, runs: 'all' }]
    return stacks
      .filter(stack => stack.spec.pool === name)
      .map(stack => ({ namespace: stack.metadata.namespace ?? '', account: stack.spec.serviceAccountName ?? own, runs: 'own' }))
  })
  const byKey = new Map(places.map(place => [`${place.namespace} ${place.account} ${place.runs}`, place]))
  return [...byKey].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, place]) => place)
}

const accountOf = (template: unknown): string =>
  (template as { spec?: { serviceAccountName?: string } } | undefined)?.spec?.serviceAccountName ?? podAccountName

/**
 * The namespaces of {@link workerPodPlaces}, and the ServiceAccounts and bindings that are missing in them or differ. The embedded server needs no
 * bindings.
 */
export async function readWorkerPodAccess(
  client: Client,
  isEmbedded: boolean,
): Promise<{ readonly namespaces: readonly string[]; readonly missing: readonly string[] }> {
  const { compareManifests, podWorkerBindings } = await clusterChecks()
  const [pools, stacks] = await Promise.all([client.resource(workerPoolResource).list(), client.resource(stackResource).listAll()])
  const places = workerPodPlaces(pools.items, stacks.items)
  const missing: string[] = []
  for (const { namespace, account, runs } of places) {
    const wanted = [
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
      ...(isEmbedded ? [] : podWorkerBindings(namespace, account, runs)),
    ]
    for (const manifest of wanted) {
      const differences = await compareManifests(client, [manifest])
      if (differences.missing.length + differences.changed.length > 0) missing.push(nameOf(manifest))
    }
  }
  return { namespaces: [...new Set(places.map(({ namespace }) => namespace))], missing: [...new Set(missing)] }
}

const nameOf = ({ kind, metadata }: { readonly kind: string; readonly metadata: { readonly name: string; readonly namespace?: string } }) =>
  `${kind} ${metadata.namespace === undefined ? '' : `${metadata.namespace}/`}${metadata.name}`
