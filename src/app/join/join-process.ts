import { workerResource } from '../../api/index.ts'
import type { Client } from '../../kubernetes/client/index.ts'
import { type Log, Manager } from '../../kubernetes/controller/index.ts'
import { lockRoleDirectory } from '../data-directory.ts'
import { type Endpoint, readEndpoint } from '../discovery/index.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { isPartition } from '../is-partition.ts'
import { startPublishedListener } from '../listener/published-listener.ts'
import { createCertificates, type RoleListenerOptions } from '../listener/tls-listener.ts'
import type { RoleProcess } from '../role-process.ts'
import { CredentialRevoker } from './credential-revoker.ts'
import { createJoinHandler } from './join-handler.ts'
import { JoinService } from './join-service.ts'
import { serviceAccountIssuer, withdrawRegistration, withdrawRights } from './service-account-issuer.ts'

/** Its certificate is always its own, because join tokens pin the key of its certificate authority. */
export type JoinProcessOptions = Omit<RoleListenerOptions, 'certificateFiles'> & {
  client: Client
  dataDir: string
  /** The address of the API server for workers. */
  api: Endpoint
  log: Log
}

/**
 * `oarlock join-service`: exchanges join tokens for the credentials of workers, as a process of its own. The credentials are tokens of
 * ServiceAccounts, so every Kubernetes API server accepts them.
 * @throws {AppStartError} if the data directory or the address cannot be used.
 */
export async function startJoinProcess(options: JoinProcessOptions): Promise<RoleProcess> {
  const { client, api, log } = options
  const release = lockRoleDirectory(options.dataDir, 'join-service', options.log)
  const joinService = new JoinService({
    client,
    issueCredential: serviceAccountIssuer(client),
    destinations: async () => {
      const stores = await readEndpoint(client, 'stores')
      // Each partition has its own: a worker finds them with its first Run there.
      if (!stores && (await isPartition(client))) return { server: api }
      // Not the API server: a worker would keep that address.
      return stores ? { server: api, stores } : { code: 503, message: 'no stores have published their address: start "oarlock stores"' }
    },
  })
  const manager = new Manager({ client, log })
  const workers = manager.informer(workerResource)
  const revoker = new CredentialRevoker({
    ...{ client, workers, log },
    onRegistered: (worker, record) => withdrawRegistration(client, worker, record),
    onEnded: worker => withdrawRights(client, worker),
  })
  try {
    const { ca: caCertificate } = await createCertificates(options.dataDir, options.listen.host, options.names)
    const listener = await startPublishedListener({
      ...options,
      role: 'join service',
      endpoint: 'join',
      // A Service or a load balancer, which may have other backends.
      staysPublished: options.advertiseUrl !== undefined,
      mounts: [{ prefix: '/join', handler: createJoinHandler({ joinService, caCertificate }) }],
      registry: makeRegistry(),
    })
    // Not awaited: an API server that cannot be reached must not hide the health endpoints, which report it.
    manager
      .start()
      .then(() => revoker.sweep())
      .catch((error: unknown) => log.warn({ err: error }, 'failed to watch Workers'))
    const stop = async () => {
      revoker.stop()
      await manager.stop()
      await listener.stop().finally(release)
    }
    return { ...listener, stop }
  } catch (error) {
    revoker.stop()
    release()
    throw error
  }
}
