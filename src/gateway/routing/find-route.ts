import { isReason, type StatusError } from '../../kubernetes/object/index.ts'
import { leaseOwners, tableOf } from '../kinds/index.ts'
import { decideRoute, type RoutedRequest, type RouteTarget, type RoutingMap } from './decide-route.ts'

/**
 * Where a request belongs; what the map does not have is looked up at home first, because it may have been created through another gateway a
 * moment ago.
 * @throws {StatusError} NotFound naming what no partition has, or what `lookUp` throws.
 */
export async function findRoute(
  request: RoutedRequest,
  state: { map(): RoutingMap; lookUp(table: string, name: string): Promise<void> },
): Promise<RouteTarget> {
  const { verb, namespace, created } = request
  const owner = verb === 'create' && tableOf(request) === 'leases.coordination.k8s.io' ? leaseOwners[namespace] : undefined
  // Without its Worker, a Lease would be created at home.
  if (owner !== undefined && created && state.map().partitionOf(owner, created.name) === undefined) await state.lookUp(owner, created.name)
  try {
    return decideRoute(request, state.map())
  } catch (error) {
    if (!isReason(error, 'NotFound')) throw error
    const { kind = '', group = '', name = '' } = (error as StatusError).details ?? {}
    await state.lookUp(tableOf({ group, plural: kind }), name)
    return decideRoute(request, state.map())
  }
}
