import { type Client, createClient } from '../../kubernetes/client/index.ts'
import { coerceError, type Log, Manager } from '../../kubernetes/controller/index.ts'
import { type AuditOptions, openPathAudit, type PathAudit } from '../../kubernetes/server/index.ts'
import { fullDiskReasons } from '../../kubernetes/util/index.ts'
import { prepareDataDirectory, prepareRoleDirectory } from '../data-directory.ts'
import { readStoresClaim } from '../discovery/index.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { startPublishedListener } from '../listener/published-listener.ts'
import type { RoleListenerOptions } from '../listener/tls-listener.ts'
import type { RoleProcess } from '../role-process.ts'
import { toAppStartError } from '../to-app-start-error.ts'
import { refusedError } from './claim-errors.ts'
import { type KeptClaim, keepClaim } from './keep-claim.ts'
import { hasStates, openStores, serveStores } from './stores.ts'
import { bindStores } from './stores-partition.ts'
import { whileClaimed } from './while-claimed.ts'

export type StoresProcessOptions = RoleListenerOptions & {
  client: Client
  /** Name of the partition that the server must be. Default: the server is none, or the directory is bound to it. */
  partition?: string | undefined
  /** In a partition: of the gateway, where the Workers of all partitions are. Default: the server is no partition. */
  workersKubeconfig?: string | undefined
  dataDir: string
  /** Makes these stores those of the installation, although others are. Default false. */
  replace?: boolean
  /** Default: no audit log. */
  audit?: AuditOptions | undefined
  log: Log
  /** These stores serve no longer, because others do: the process must exit. */
  onLost(error: Error): void
}

/**
 * `oarlock stores`: the state store and the log store of an installation, as a process of their own. It knows the API server only as a client:
 * tokens are checked by TokenReview, rights by SubjectAccessReview.
 * @throws {AppStartError} if the data directory or the address cannot be used, other stores are those of the installation,
 * another process serves them, or the server is not the partition that is named or whose states the directory has.
 */
export async function startStoresProcess(options: StoresProcessOptions): Promise<RoleProcess> {
  const { client, dataDir, log } = options
  prepareDataDirectory(dataDir, log)
  if (!options.replace && !hasStates(dataDir)) await refuseNewStates(client, dataDir, log)
  prepareRoleDirectory(dataDir, 'stores', log)
  await bindStores(client, dataDir, options.partition, log)
  const audit = options.audit && openAuditLog(options.audit, dataDir, log)
  const stores = await openStores({ dataDir, log })
  const registry = makeRegistry()
  const manager = new Manager({ client, log, registry })
  const kubeconfig = options.workersKubeconfig
  const workersClient = kubeconfig === undefined ? undefined : await createClient({ kubeconfig, userAgent: 'oarlock-stores' })
  const handlers = serveStores(stores, { client, workersClient, manager, registry, log })
  let claim: KeptClaim | undefined
  try {
    claim = await keepClaim({ client, stores, dataDir, replace: options.replace ?? false, log, onLost: options.onLost })
    const kept = claim
    manager.addReadinessCheck(() => [...kept.notReady(), ...fullDiskReasons(dataDir)])
    const { url, notReady, stop } = await startPublishedListener({
      ...options,
      role: 'state and log stores',
      endpoint: 'stores',
      // Without an entry, stores are expected on the address of the API server: a worker that joins while they restart would keep that one.
      staysPublished: true,
      mayPublish: () => kept.isClaimed,
      mounts: [
        { prefix: '/state/', handler: whileClaimed(kept, handlers.state) },
        { prefix: '/logs/', handler: whileClaimed(kept, handlers.log) },
      ],
      registry,
      audit,
      readyz: () => manager.readyz(),
    })
    manager.start().catch((error: unknown) => log.error({ err: error }, 'failed to start the caches of the stores'))
    return {
      url,
      notReady,
      stop: async () => {
        await stop()
        await manager.stop()
        await claim?.release()
        await stores.close()
        await audit?.close()
        await workersClient?.close()
      },
    }
  } catch (error) {
    await claim?.release()
    await stores.close()
    await audit?.close()
    await workersClient?.close()
    throw error
  }
}

function openAuditLog(options: AuditOptions, dataDir: string, log: Log): PathAudit {
  try {
    return openPathAudit(options, log)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}

/**
 * Refuses a directory that has no states before anything is written to it: it may be that of another role. If the API server does not answer,
 * the claim decides later.
 */
async function refuseNewStates(client: Client, dataDir: string, log: Pick<Log, 'warn'>): Promise<void> {
  const { id: other } = await readStoresClaim(client).catch((error: unknown) => {
    log.warn({ err: coerceError(error) }, 'failed to check which stores are those of the installation')
    return {} as { id?: string }
  })
  if (other !== undefined) throw refusedError(dataDir, 'none', { kind: 'other', id: other })
}
