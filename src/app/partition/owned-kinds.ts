import { oarlockResources } from '../../api/index.ts'
import { namespaceResource } from '../../kubernetes/client/index.ts'
import { describeResource, type Resource } from '../../kubernetes/object/index.ts'

const kinds = [
  namespaceResource,
  ...oarlockResources.filter(({ plural }) => plural === 'workers'),
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'Node', plural: 'nodes' }),
  describeResource({ group: '', version: 'v1', scope: 'Cluster', kind: 'PersistentVolume', plural: 'persistentvolumes' }),
] as readonly Resource<unknown>[]

/** The kinds whose names are claimed, by plural and group, such as `namespaces` and `workers.oarlock.dev`. */
export const ownedKinds: ReadonlyMap<string, Resource<unknown>> = new Map(
  kinds.map(kind => [kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`, kind]),
)
