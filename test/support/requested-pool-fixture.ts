import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Registry } from 'prom-client'
import { startApiServer } from '../../src/app/api-server/api-server.ts'
import { makeControllers } from '../../src/app/controllers/controllers.ts'
import { installOarlock } from '../../src/app/controllers/install.ts'
import { createJoinHandler, JoinService, serverTokenIssuer } from '../../src/app/join/index.ts'
import { openStores, serveStores } from '../../src/app/stores/stores.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { silentLog } from '../../src/kubernetes/controller/index.ts'
import { eventually } from './eventually.ts'

const launcher = join(import.meta.dirname, '..', '..', 'bin', 'oarlock.js')

/** API server, stores, join service and controllers in this process. The controllers start no process: they request workers of `oarlock pool`. */
export type RequestedPoolFixture = {
  /** An administrator. */
  readonly client: Client
  readonly kubeconfig: string
  /** Makes the join service reject every worker. */
  rejectJoins(isRejecting: boolean): void
  close(): Promise<void>
}

export async function startRequestedPoolFixture(dataDir: string): Promise<RequestedPoolFixture> {
  const api = await startApiServer({ dataDir, listen: { host: '127.0.0.1', port: 0 }, mounts: ['/state/', '/logs/', '/join'] })
  const stores = await openStores({ dataDir, log: silentLog })
  const client = await api.connect({ name: 'admin', groups: ['system:masters'] }, 'test')
  await installOarlock(client)
  const registry = new Registry()
  const controllers = makeControllers({
    client,
    removeStackData: ({ uid }) => stores.state.deleteStack(uid),
    allowPaths: [],
    cacheDir: join(dataDir, 'cache'),
    registry,
    log: silentLog,
  })
  const { manager } = controllers
  api.setRunsOfWorker(controllers.runsOfWorker)
  const handlers = serveStores(stores, { client, manager, registry, log: silentLog })
  const { server, mounts } = api
  const joinService = new JoinService({ client, issueCredential: serverTokenIssuer(server) })
  const joinHandler = createJoinHandler({ joinService, caCertificate: server.caCertificate })
  let isRejectingJoins = false
  mounts.set('/join', async (request, response, context) => {
    if (!isRejectingJoins || request.url !== '/join') return await joinHandler(request, response, context)
    response.writeHead(401, { 'Content-Type': 'application/json' }).end('{"message":"rejected by the test"}')
  })
  mounts.set('/state/', handlers.state)
  mounts.set('/logs/', handlers.log)
  await manager.start()
  return {
    ...{ client, kubeconfig: server.kubeconfigPath },
    rejectJoins: isRejecting => {
      isRejectingJoins = isRejecting
    },
    close: async () => {
      await manager.stop()
      await client.close()
      await server.close({ graceMs: 500 })
      await stores.close()
    },
  }
}

export type AgentProcess = {
  readonly child: ChildProcess
  /** Everything printed so far, log lines included. */
  output(): string
  /** The value of a metric, such as `oarlock_pool_claims_total{outcome="claimed"}`. */
  metric(name: string): Promise<number>
  /** Sends a signal and waits for the exit; returns its code. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

/** Starts `oarlock pool` as on another host, and waits until it claims requests. */
export async function startAgentProcess(kubeconfig: string, dataDir: string, args: readonly string[] = []): Promise<AgentProcess> {
  const all = ['pool', '--kubeconfig', kubeconfig, '--data', dataDir, '--health-address', '127.0.0.1:0', ...args]
  const child = spawn(process.execPath, [launcher, ...all], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, NO_COLOR: '1' },
  })
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', text => (printed += text))
  await eventually(() => {
    if (child.exitCode !== null) throw new Error(`oarlock pool exited with ${child.exitCode}:\n${printed}`)
    return /^ready:/m.test(printed)
  }, 'oarlock pool to be ready')
  const healthUrl = /health is served at (\S+)/.exec(printed)?.[1]
  return {
    child,
    output: () => printed,
    metric: async name => {
      const token = readFileSync(join(dataDir, 'status-token'), 'utf8').trim()
      const text = await (await fetch(`${healthUrl}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
      const line = text.split('\n').find(each => each.startsWith(`${name} `))
      return Number(line?.slice(name.length + 1))
    },
    end: async signal => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit')
        child.kill(signal)
        await ended
      }
      return child.exitCode
    },
  }
}
