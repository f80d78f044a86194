/**
 * A program with a Kubernetes API of its own: it starts the server, defines a kind and is the controller for it.
 * `node examples/embedded-server/greetings.ts [DATA-DIRECTORY [HOST:PORT]]`
 */
import { createClient, installKinds } from '../../src/kubernetes/client/index.ts'
import { consoleLog, controller, Manager, patchStatusIfChanged, predicates } from '../../src/kubernetes/controller/index.ts'
import { defineResource, Type } from '../../src/kubernetes/index.ts'
import { ServerStartError, startServer } from '../../src/kubernetes/server/index.ts'

const greetingResource = defineResource({
  group: 'example.com',
  version: 'v1',
  kind: 'Greeting',
  plural: 'greetings',
  scope: 'Namespaced',
  description: 'Whom to greet.',
  spec: Type.Object({ to: Type.String({ minLength: 1 }) }),
  status: Type.Object({ text: Type.Optional(Type.String()) }),
})

const [dataDir = 'greetings-data', address = '127.0.0.1:7466'] = process.argv.slice(2)
const [, host, port] = /^(.*):(\d+)$/.exec(address) ?? []
const server = await startServer({ dataDir, listen: { host, port: Number(port) }, log: consoleLog() }).catch(error => {
  // Its message explains the cause: the address is in use, another process uses the data directory, the disk is full.
  console.error(error instanceof ServerStartError ? error.message : error)
  process.exit(1)
})
const client = await createClient({ kubeconfig: server.kubeconfigPath })
await installKinds(client, [greetingResource])
const manager = new Manager({ client, log: consoleLog() })
manager.add(
  controller({
    name: 'greetings',
    for: greetingResource,
    predicates: [predicates.generationChanged],
    async reconcile({ object: greeting }) {
      if (greeting) await patchStatusIfChanged(client, greeting, { text: `Hello, ${greeting.spec.to}!` })
    },
  }),
)
console.log(`kubectl --kubeconfig ${server.kubeconfigPath} get greetings`)
// Runs until SIGTERM or Ctrl-C: the controller stops first, then its server.
await manager.run()
await client.close()
await server.close()
