import type { IncomingMessage } from 'node:http'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Counter, type Registry } from 'prom-client'
import type { Worker, WorkerPool } from '../../api/index.ts'
import { countUnsavedStates } from '../../execution/worker/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { type Log, Manager } from '../../kubernetes/controller/index.ts'
import { type Address, formatAddress } from '../address.ts'
import { checkSandboxBinds, prepareRoleDirectory } from '../data-directory.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { hasToken, openStatusToken } from '../endpoints/status-access.ts'
import { registerUnsavedStates } from '../endpoints/unsaved-states-metric.ts'
import { createJoinToken } from '../join/index.ts'
import { drainProcessPool, openProcessPool } from '../process-pool/local-pool.ts'
import { listenError } from '../to-app-start-error.ts'
import { openAgentIdentity } from './agent-identity.ts'
import { agentCaches, type ClaimOutcome, PoolAgent } from './pool-agent.ts'

export type PoolRoleOptions = {
  client: Client
  /** Where the workers join, with the certificate authority (PEM) that their join tokens pin. Asked for each worker. */
  joinEndpoint(): Promise<{ url: string; caCertificate: string }>
  /** Holds the identity of this agent, and the output, Runs and caches of its workers. One process uses it at a time. */
  dataDir: string
  /** Names of the pools whose workers are started here. */
  pools: readonly string[]
  maxWorkers: number
  /** Labels of the workers that are started here. */
  labels: Readonly<Record<string, string>>
  /** Program and leading arguments that start a worker, such as Node and bin/oarlock.js. */
  launcher: readonly string[]
  /** Directories below which Stacks may use `source.path` and file:// repositories. */
  allowPaths: readonly string[]
  /** Address of /livez, /readyz and /metrics. Default: not served. */
  healthAddress?: Address | undefined
  log: Log
  nowMs?: () => number
}

export type PoolRole = {
  readonly agent: string
  /** The names of the worker processes on this host. */
  running(): readonly string[]
  readonly healthPort: number | undefined
  /** Resolves when the caches are filled: from then on, requests are claimed. Rejects if `healthAddress` cannot be listened on. */
  readonly whenReady: Promise<void>
  /** The reasons why this process claims nothing of some pool, as `/readyz`, with the names of pools and the texts of errors; empty if it claims requests of all. */
  notReady(): readonly string[]
  /** Claims nothing more, lets workers finish for `graceMs`, then interrupts their engines so that they save their state. */
  stop(options: { graceMs: number; onProgress?: ((running: number) => void) | undefined }): Promise<void>
  /** Interrupts the engines immediately during `stop`. */
  interrupt(): void
}

/** The worker joins right after its start. */
const joinTokenTtlMs = 10 * 60_000

/**
 * `oarlock pool`: starts the workers that a controller elsewhere requests. A process that is killed leaves its workers running; the next one on the
 * same data directory adopts them (on Linux).
 * @throws {AppStartError} if the data directory is in use, cannot be written, or belongs to another user and others can write to it.
 */
export function startPool(options: PoolRoleOptions): PoolRole {
  const { client, joinEndpoint, dataDir, pools, maxWorkers, labels, launcher, allowPaths, healthAddress, log, nowMs = Date.now } = options
  checkSandboxBinds(dataDir)
  prepareRoleDirectory(dataDir, 'pool', log)
  const host = hostname()
  const identity = openAgentIdentity(dataDir, host)
  /** Of workers that are about to start. */
  const connections = new Map<string, Readonly<Record<string, string>>>()
  const connection = async (name: string) => {
    const found = connections.get(name) ?? {}
    connections.delete(name)
    return found
  }
  const processes = openProcessPool({ dataDir, launcher, allowPaths, log, connection })
  const registry = makeRegistry({ workers: () => processes.running().length })
  registerUnsavedStates(registry, { local: () => countUnsavedStates(join(dataDir, 'runs')) })
  const claims = claimsCounter(registry)
  const statusToken = openStatusToken(dataDir)
  const mayReadMetrics = (request: IncomingMessage) => hasToken(request, [statusToken])
  const manager = new Manager({ client, log, registry, probes: healthAddress && { ...healthAddress, mayReadMetrics } })
  const adopted = processes.running().map(({ pool }) => pool)
  const prepare = async ({ metadata: { name, uid }, spec: { pool } }: Worker) => {
    const { url, caCertificate } = await joinEndpoint()
    const token = await createJoinToken(client, caCertificate, { pool, worker: name, uses: 1, ttlMs: joinTokenTtlMs, labels })
    connections.set(name, { OARLOCK_SERVER: url, OARLOCK_TOKEN: token.text, OARLOCK_WORKER_UID: uid })
  }
  const caches = agentCaches(manager, new Set([...pools, ...adopted]))
  const notServed = () => (caches.pools.hasSynced ? pools.flatMap(name => whyNotServed(name, caches.pools.get(name))) : [])
  // Anybody who can connect to the health address may read it: it names no pools.
  const readinessReasons = () => {
    const { length } = notServed()
    return length === 0 ? [] : [`${length} of ${pools.length} WorkerPools cannot be served: the output of "oarlock pool" names them`]
  }
  manager.addReadinessCheck(readinessReasons)
  let reported = ''
  const logNotServed = () => {
    const reasons = notServed().join('; ')
    if (reasons !== reported && reasons !== '') log.warn({ reasons }, 'some WorkerPools cannot be served')
    reported = reasons
  }
  caches.pools.onChange({ added: logNotServed, updated: logNotServed, deleted: logNotServed })
  const agent = new PoolAgent({
    ...{ manager, processes, prepare, host, maxWorkers, log, nowMs },
    ...caches,
    agent: identity.name,
    served: new Set(pools),
    onClaim: outcome => claims.inc({ outcome }),
  })
  // Not awaited: an API server that cannot be reached must not hide the health endpoints, which report it.
  const whenReady = manager.start().catch((error: unknown) => {
    throw healthAddress ? listenError('health endpoints', '--health-address', formatAddress(healthAddress), error) : error
  })
  return {
    agent: identity.name,
    running: () => processes.running().map(({ name }) => name),
    get healthPort() {
      return manager.probePort
    },
    whenReady,
    notReady: () => {
      const names = readinessReasons()
      return [...manager.readyz().reasons.filter(reason => !names.includes(reason)), ...notServed()]
    },
    interrupt: () => processes.interrupt(),
    stop: async ({ graceMs, onProgress }) => {
      await agent.drain()
      await drainProcessPool(processes, { graceMs, onProgress, log })
      await agent.settled()
      agent.close()
      await manager.stop()
      identity.release()
    },
  }
}

function whyNotServed(name: string, pool: Pick<WorkerPool, 'spec'> | undefined): string[] {
  if (!pool) return [`WorkerPool ${JSON.stringify(name)} does not exist`]
  // An older or foreign CRD may accept a WorkerPool without a spec, and this must not end the process.
  const { mode } = (pool.spec as WorkerPool['spec'] | undefined) ?? {}
  switch (mode) {
    case 'Process':
      return []
    case 'Pod':
      return [`WorkerPool ${JSON.stringify(name)} has mode Pod: its controller starts worker Pods, and "oarlock pool" none`]
    case 'External':
      return [`WorkerPool ${JSON.stringify(name)} has mode External: start its workers with "oarlock worker"`]
    default:
      return [`WorkerPool ${JSON.stringify(name)} has no valid spec.mode: set it to Process`]
  }
}

function claimsCounter(registry: Registry): Counter<'outcome'> {
  const help = 'Requests to start a worker that this host claimed, lost to another host, or claimed and failed to start.'
  const counter = new Counter({ name: 'oarlock_pool_claims_total', help, labelNames: ['outcome'] as const, registers: [registry] })
  for (const outcome of ['claimed', 'lost', 'failed'] satisfies ClaimOutcome[]) counter.inc({ outcome }, 0)
  return counter
}
