/** The smallest useful operator: whoever asks for seats gets a crew. `node examples/operators/boats.ts [KUBECONFIG]` */
import Type from 'typebox'
import { type Client, crdResource, createClient } from '../../src/client/index.ts'
import { type Controller, controller, Manager, patchStatusIfChanged, predicates } from '../../src/controller/index.ts'
import { defineResource } from '../../src/kube/index.ts'

export const boatResource = defineResource({
  group: 'harbor.example',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat and how many it seats.',
  spec: Type.Object({ seats: Type.Integer({ minimum: 1 }) }),
  status: Type.Object({ crew: Type.Optional(Type.Integer()) }),
})

export function boatController(manager: Manager, client: Client): Controller {
  const boats = manager.informer(boatResource)
  return controller({
    name: 'boats',
    for: boatResource,
    predicates: [predicates.generationChanged],
    async reconcile({ key }) {
      const boat = boats.get(key)
      if (!boat) return
      boats.applyLocal(await patchStatusIfChanged(client, boat, { crew: boat.spec.seats }))
    },
  })
}

if (import.meta.main) {
  const client = await createClient({ kubeconfig: process.argv[2] })
  await client.resource(crdResource).apply(boatResource.toCrd())
  const manager = new Manager({ client })
  manager.add(boatController(manager, client))
  await manager.run()
  await client.close()
}
