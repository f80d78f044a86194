/** Owned objects: a Fleet has one ConfigMap per ship. `node examples/operators/fleets.ts [KUBECONFIG]` */
import { configMapResource, createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import {
  type Controller,
  consoleLog,
  controller,
  createOrPatch,
  Manager,
  patchStatusIfChanged,
} from '../../src/kubernetes/controller/index.ts'
import { controllerReference, defineResource, Type } from '../../src/kubernetes/index.ts'

export const fleetResource = defineResource({
  group: 'harbor.example',
  version: 'v1',
  kind: 'Fleet',
  plural: 'fleets',
  scope: 'Namespaced',
  description: 'Ships that sail together.',
  spec: Type.Object({ ships: Type.Array(Type.String()), port: Type.String() }),
  status: Type.Object({ ready: Type.Optional(Type.Integer()) }),
})

export function fleetController(manager: Manager): Controller {
  // The cache holds only our own ConfigMaps, however many the cluster has.
  const selection = { labelSelector: 'harbor.example/fleet' }
  const orders = manager.informer(configMapResource, {
    ...selection,
    indexes: { fleet: ({ metadata }) => [`${metadata.namespace}/${metadata.labels?.['harbor.example/fleet']}`] },
  })
  return controller({
    name: 'fleets',
    for: fleetResource,
    // If an owned ConfigMap is edited or deleted, its Fleet is reconciled and corrects it.
    owns: [{ resource: configMapResource, informer: selection }],
    async reconcile({ key, object: fleet, client }) {
      if (!fleet || fleet.metadata.deletionTimestamp) return
      const { name, namespace } = fleet.metadata
      const { ships, port } = fleet.spec
      const handle = client.resource(configMapResource)
      for (const ship of ships) {
        const orderName = `${name}-${ship}`
        await createOrPatch(handle, { name: orderName, namespace, current: orders.get(`${namespace}/${orderName}`) }, current => ({
          metadata: {
            labels: { ...current?.metadata.labels, 'harbor.example/fleet': name },
            ownerReferences: [controllerReference(fleet)],
          },
          data: { port },
        }))
      }
      const wanted = new Set(ships.map(ship => `${name}-${ship}`))
      for (const order of orders.byIndex('fleet', key)) {
        if (!wanted.has(order.metadata.name)) await handle.delete(order.metadata.name, { namespace })
      }
      await patchStatusIfChanged(client, fleet, { ready: ships.length })
    },
  })
}

if (import.meta.main) {
  const client = await createClient({ kubeconfig: process.argv[2] })
  await installKinds(client, [fleetResource])
  const manager = new Manager({ client, log: consoleLog() })
  manager.add(fleetController(manager))
  await manager.run()
  await client.close()
}
