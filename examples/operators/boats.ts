/** The smallest useful operator: every Boat gets a crew for its seats. `node examples/operators/boats.ts [KUBECONFIG]` */
import { createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import {
  type Controller,
  consoleLog,
  controller,
  Manager,
  patchStatusIfChanged,
  predicates,
} from '../../src/kubernetes/controller/index.ts'
import { defineResource, Type } from '../../src/kubernetes/index.ts'

export const boatResource = defineResource({
  group: 'harbor.example',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat and its number of seats.',
  spec: Type.Object({ seats: Type.Integer({ minimum: 1 }) }),
  status: Type.Object({ crew: Type.Optional(Type.Integer()) }),
})

export function boatController(): Controller {
  return controller({
    name: 'boats',
    for: boatResource,
    predicates: [predicates.generationChanged],
    async reconcile({ object: boat, client }) {
      if (!boat) return
      await patchStatusIfChanged(client, boat, { crew: boat.spec.seats })
    },
  })
}

if (import.meta.main) {
  const client = await createClient({ kubeconfig: process.argv[2] })
  await installKinds(client, [boatResource])
  const manager = new Manager({ client, log: consoleLog() })
  manager.add(boatController())
  await manager.run()
  await client.close()
}
