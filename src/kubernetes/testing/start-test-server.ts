import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Client, createClient, installKinds } from '../client/index.ts'
import type { CustomResource } from '../object/index.ts'
import { type ApiServer, startServer } from '../server/index.ts'

export type TestServerOptions = {
  /** Kinds to install; the server serves them when the promise resolves. */
  kinds?: readonly CustomResource<unknown>[] | undefined
  /** Default: a new temporary directory, removed by `close`. A given one is kept, for tests of restarts. */
  dataDir?: string | undefined
}

export type TestServer = AsyncDisposable & {
  readonly server: ApiServer
  /** Has all permissions. */
  readonly client: Client
  readonly kubeconfigPath: string
  /** Stops the server and its client, and removes the temporary directory. */
  close(): Promise<void>
}

const servedWithinMs = 10_000

/**
 * Starts a real API server in this process, on a free port, with a client that has all permissions. Writes are not synced
 * to disk. `await using api = await startTestServer({ kinds: [boatResource] })` closes it at the end of the scope.
 */
export async function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'oarlock-testing-')))
  const remove = async () => {
    if (options.dataDir === undefined) await rm(dataDir, { recursive: true, force: true })
  }
  let server: ApiServer | undefined
  let client: Client | undefined
  const close = async () => {
    await client?.close()
    await server?.close({ graceMs: 500 })
    await remove()
  }
  try {
    server = await startServer({ dataDir, listen: { port: 0 }, storage: { synchronous: 'OFF' } })
    client = await createClient({ kubeconfig: server.kubeconfigPath })
    await installKinds(client, options.kinds ?? [], { timeoutMs: servedWithinMs })
    return { server, client, kubeconfigPath: server.kubeconfigPath, close, [Symbol.asyncDispose]: close }
  } catch (error) {
    await close()
    throw error
  }
}
