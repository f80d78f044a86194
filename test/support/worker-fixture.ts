import { join } from 'node:path'
import { oarlockResources, type Run, systemNamespace } from '../../src/api/index.ts'
import { makeAuthorizer } from '../../src/app/api-server/authorize.ts'
import { workerFacts } from '../../src/app/api-server/worker-facts.ts'
import { AccessReviewer } from '../../src/app/delegated-auth/access-reviewer.ts'
import { createRunInputs } from '../../src/app/stores/run-inputs.ts'
import { authorizeLog, authorizeState, type StoreFacts } from '../../src/app/stores/store-access.ts'
import { poolGroup, workersGroup, workerUserName } from '../../src/app/worker-identity.ts'
import { type Client, createClient, installKinds, namespaceResource } from '../../src/kubernetes/client/index.ts'
import { type ApiServer, startServer } from '../../src/kubernetes/server/index.ts'
import { createLogHandler, type LogStore, openLogStore } from '../../src/stores/log/index.ts'
import { createStateHandler, openStateStore, type StateStore } from '../../src/stores/state/index.ts'

/** The environment of a worker: API server, stores and authorization as in the all-in-one. No controllers: a test assigns the Runs. */
export type WorkerFixture = {
  server: ApiServer
  /** An administrator. */
  client: Client
  states: StateStore
  logs: LogStore
  /** The credential that a worker of this name gets in the all-in-one. */
  issueWorkerToken(name: string): string
  close(): Promise<void>
}

/**
 * Starts an API server with Oarlock's kinds, the namespace `apps` and the stores of states and logs, all kept in `directory`.
 * @param isLockAbandoned whether the holder of any state lock counts as ended.
 */
export async function startWorkerFixture(
  directory: string,
  { host = '127.0.0.1', isLockAbandoned }: { host?: string; isLockAbandoned: boolean },
): Promise<WorkerFixture> {
  const states = await openStateStore({ directory: join(directory, 'state'), key: Buffer.alloc(32, 7) })
  const logs = openLogStore({ directory: join(directory, 'logs') })
  const started: { server?: ApiServer; client?: Client } = {}
  // Its tokens have no record.
  const facts = { ...workerFacts(() => started.server), hasNewCredential: () => true }
  const storeFacts = (): StoreFacts => ({
    client: started.client as Client,
    access: new AccessReviewer(started.client as Client),
    cachedRun: () => undefined,
    cachedStack: () => undefined,
    checkStackToken: async () => false,
    nowMs: Date.now,
  })
  const stateHandler = createStateHandler({
    store: states,
    authorize: request => authorizeState(storeFacts(), request),
    isLockAbandoned: async () => isLockAbandoned,
    // The client is created after the server.
    get inputs() {
      return createRunInputs({ client: started.client as Client, onError: () => {} })
    },
  })
  const logHandler = createLogHandler({ store: logs, authorize: request => authorizeLog(storeFacts(), request) })
  const server = await startServer({
    dataDir: join(directory, 'server'),
    listen: { host, port: 0 },
    storage: { synchronous: 'OFF' },
    authorize: makeAuthorizer(facts),
    mounts: [
      { prefix: '/state/', handler: (request, response, { user }) => stateHandler(request, response, { user }) },
      { prefix: '/logs/', handler: (request, response, { user }) => logHandler(request, response, { user }) },
    ],
  })
  const client = await createClient({ kubeconfig: server.kubeconfigPath })
  Object.assign(started, { server, client })
  await installKinds(client, oarlockResources)
  for (const name of [systemNamespace, 'apps']) await client.resource(namespaceResource).apply({ metadata: { name } }, { force: true })
  return {
    ...{ server, client, states, logs },
    issueWorkerToken: name =>
      server.issueToken({ name: workerUserName(name), groups: [workersGroup, poolGroup('default')], ttlMs: 600_000 }),
    close: async () => {
      await client.close()
      await server.close()
      await states.close()
      await logs.close()
    },
  }
}

/** The key of the state store for a Run's Stack. */
export const stackUidOf = (run: Run): string => run.spec.stackRef.uid
