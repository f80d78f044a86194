/** A finalizer and an external system: names in a registry that is not Kubernetes. `node examples/operators/domains.ts [KUBECONFIG]` */
import { createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import {
  addFinalizer,
  type Controller,
  consoleLog,
  controller,
  Manager,
  patchStatusIfChanged,
  removeFinalizer,
  TerminalError,
} from '../../src/kubernetes/controller/index.ts'
import { defineResource, Type } from '../../src/kubernetes/index.ts'

export const domainResource = defineResource({
  group: 'harbor.example',
  version: 'v1',
  kind: 'Domain',
  plural: 'domains',
  scope: 'Namespaced',
  description: 'A name that points to an address.',
  spec: Type.Object({ name: Type.String(), address: Type.String() }),
  status: Type.Object({ registered: Type.Optional(Type.String()) }),
})

const finalizer = 'harbor.example/registry'
/** How often the registry is checked: it sends no events when another client changes it. */
const lookEveryMs = 60_000

/** The external system. Both calls are idempotent, as every call of a reconcile must be. */
export type Registry = {
  set(name: string, address: string, signal: AbortSignal): Promise<void>
  remove(name: string, signal: AbortSignal): Promise<void>
}

export function domainController(registry: Registry): Controller {
  return controller({
    name: 'domains',
    for: domainResource,
    maxConcurrent: 4,
    timeoutMs: 30_000,
    backoff: { baseDelayMs: 1_000, maxDelayMs: 60_000 },
    async reconcile({ object: domain, client, signal }) {
      if (!domain) return
      const { name, address } = domain.spec
      if (domain.metadata.deletionTimestamp) {
        // First the external system, then the finalizer: a failure in between is retried.
        await registry.remove(domain.status?.registered ?? name, signal)
        await removeFinalizer(client, domain, finalizer)
        return
      }
      if (!name.includes('.')) throw new TerminalError(`spec.name ${JSON.stringify(name)} must have a dot`)
      // Before anything is created externally: from now on a deletion always runs the cleanup.
      const held = await addFinalizer(client, domain, finalizer)
      if (held.status?.registered && held.status.registered !== name) await registry.remove(held.status.registered, signal)
      await registry.set(name, address, signal)
      await patchStatusIfChanged(client, held, { registered: name })
      return { requeueAfterMs: lookEveryMs }
    },
  })
}

if (import.meta.main) {
  const client = await createClient({ kubeconfig: process.argv[2] })
  await installKinds(client, [domainResource])
  const manager = new Manager({ client, log: consoleLog() })
  const records = new Map<string, string>()
  const registry: Registry = {
    set: async (name, address) => {
      if (records.get(name) !== address) console.log(`${name} -> ${address}`)
      records.set(name, address)
    },
    remove: async name => {
      if (records.delete(name)) console.log(`${name} is gone`)
    },
  }
  manager.add(domainController(registry))
  await manager.run()
  await client.close()
}
