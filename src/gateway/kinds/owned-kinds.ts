import { workerResource } from '../../api/index.ts'
import { namespaceResource } from '../../kubernetes/client/index.ts'
import { describeResource, type Resource } from '../../kubernetes/object/index.ts'

const kinds = [
  namespaceResource,
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'Node', plural: 'nodes' }),
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'PersistentVolume', plural: 'persistentvolumes' }),
  workerResource,
] as readonly Resource<unknown>[]

/** `leases.coordination.k8s.io`, or `nodes` for the core group. */
export const tableOf = ({ group, plural }: { readonly group: string; readonly plural: string }): string =>
  group === '' ? plural : `${plural}.${group}`

/** The kinds each of whose objects is in one partition, where its name is claimed, by plural and group: `nodes`, `workers.oarlock.dev`. */
export const ownedKinds: ReadonlyMap<string, Resource<unknown>> = new Map(kinds.map(kind => [tableOf(kind), kind]))

/** Those of resource partitions. */
export const ownedResources: ReadonlyMap<string, Resource<unknown>> = new Map([...ownedKinds].filter(([table]) => table !== 'namespaces'))
