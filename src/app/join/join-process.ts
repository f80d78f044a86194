import type { Client } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { lockRoleDirectory } from '../data-directory.ts'
import { type Endpoint, readEndpoint } from '../discovery/index.ts'
import { makeRegistry } from '../endpoints/metrics.ts'
import { startPublishedListener } from '../listener/published-listener.ts'
import { createCertificates, type RoleListenerOptions } from '../listener/tls-listener.ts'
import type { RoleProcess } from '../role-process.ts'
import { createJoinHandler } from './join-handler.ts'
import { JoinService } from './join-service.ts'
import { serviceAccountIssuer } from './service-account-issuer.ts'

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
  const { client, api } = options
  const release = lockRoleDirectory(options.dataDir, 'join-service', options.log)
  const joinService = new JoinService({
    client,
    issueCredential: serviceAccountIssuer(client),
    destinations: async () => {
      const stores = await readEndpoint(client, 'stores')
      // Not the API server: a worker would keep that address.
      return stores ? { server: api, stores } : { code: 503, message: 'no stores have published their address: start "oarlock stores"' }
    },
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
    return { ...listener, stop: async () => await listener.stop().finally(release) }
  } catch (error) {
    release()
    throw error
  }
}
