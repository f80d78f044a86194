import { join } from 'node:path'
import { oarlockResources, type Run, systemNamespace } from '../../src/api/index.ts'
import { type Client, createClient, installKinds, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../src/kubernetes/server/index.ts'
import { createLogHandler, type LogStore, openLogStore } from '../../src/stores/log/index.ts'
import { createStateHandler, openStateStore, type StateStore } from '../../src/stores/state/index.ts'

/** What a worker needs around it; no controllers: a test gives the Runs itself. */
export type WorkerFixture = { server: ApiServer; client: Client; states: StateStore; logs: LogStore; close(): Promise<void> }

/** Starts an API server with Oarlock's kinds, the namespace `apps` and the stores of states and logs, all kept in `directory`. */
export async function startWorkerFixture(
  directory: string,
  { host = '127.0.0.1', isHolderGone }: { host?: string; isHolderGone: boolean },
): Promise<WorkerFixture> {
  const states = await openStateStore({ directory: join(directory, 'state'), key: Buffer.alloc(32, 7) })
  const logs = openLogStore({ directory: join(directory, 'logs') })
  const stateHandler = createStateHandler({
    store: states,
    authorize: async ({ namespace, stack }) => ({ allowed: true, stackUid: `${namespace}-${stack}`, access: 'run' }),
    isLockAbandoned: async () => isHolderGone,
  })
  const logHandler = createLogHandler({ store: logs, authorize: async () => ({ allowed: true }) })
  const userOf = (user: { name: string; groups: readonly string[] } | undefined) => user && { name: user.name, groups: [...user.groups] }
  const server = await startServer({
    dataDir: join(directory, 'server'),
    listen: { host, port: 0 },
    storage: { synchronous: 'OFF' },
    mounts: [
      { prefix: '/state/', handler: (request, response, { user }) => stateHandler(request, response, { user: userOf(user) }) },
      { prefix: '/logs/', handler: (request, response, { user }) => logHandler(request, response, { user: userOf(user) }) },
    ],
  })
  const client = await createClient({ kubeconfig: server.kubeconfigPath })
  await installKinds(client, oarlockResources)
  for (const name of [systemNamespace, 'apps']) await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  const close = async () => {
    await client.close()
    await server.close()
    await states.close()
    await logs.close()
  }
  return { server, client, states, logs, close }
}

/** Under which name the state of the Run's Stack is kept here. */
export const keptAs = (run: Run) => `apps-${run.spec.stackRef.name}`
