import type { Registry } from 'prom-client'
import type { Client } from '../../kubernetes/client/index.ts'
import type { Health, Log } from '../../kubernetes/controller/index.ts'
import type { PathAudit } from '../../kubernetes/server/index.ts'
import { fullReason, publicReason } from '../../kubernetes/util/index.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import { authenticateByTokenReview } from '../delegated-auth/authenticate-by-token-review.ts'
import { impersonateByAccessReview } from '../delegated-auth/impersonation.ts'
import { type EndpointRole, keepPublishing, type Publication } from '../discovery/index.ts'
import { createMetricsHandler } from '../endpoints/metrics-endpoint.ts'
import type { Mount } from '../mount.ts'
import type { RoleProcess } from '../role-process.ts'
import { type RoleListenerOptions, startTlsListener } from './tls-listener.ts'

export type PublishedListenerOptions = RoleListenerOptions & {
  client: Client
  dataDir: string
  /** For messages: `join service`. */
  role: string
  endpoint: EndpointRole
  /** Whether the published address outlives this process. */
  staysPublished: boolean
  /** Whether the address may be published now. Default: always. */
  mayPublish?: (() => boolean) | undefined
  mounts: readonly Mount[]
  /** Served at `/metrics`. */
  registry: Registry
  /** Why the role is not ready, besides the publication of its address. Default: nothing else. */
  readyz?(): Health
  /** Records requests of authenticated users. Default: none are recorded. */
  audit?: Pick<PathAudit, 'begin'> | undefined
  log: Log
}

/**
 * The listener of a role that others find by its published address; with `/metrics`.
 * @throws {AppStartError} if the address or the data directory cannot be used.
 */
export async function startPublishedListener(options: PublishedListenerOptions): Promise<RoleProcess> {
  const { client, role, endpoint, advertiseUrl, registry, log } = options
  let publication: Publication | undefined
  const publicationReasons = () => publication?.notReady() ?? []
  const listener = await startTlsListener({
    ...options,
    authenticate: authenticateByTokenReview(client),
    impersonate: impersonateByAccessReview(new AccessReviewer(client)),
    mounts: [...options.mounts, { prefix: '/metrics', handler: createMetricsHandler(client, registry) }],
    notReady: () => [...(options.readyz?.().publicReasons ?? []), ...publicationReasons().map(publicReason)],
    onCaChange: caCertificate => publication?.replace({ url: advertiseUrl ?? listener.url, caCertificate }),
    onError: error => log.error({ err: error }, `request to the ${role} failed`),
  })
  const url = advertiseUrl ?? listener.url
  const published = keepPublishing({
    ...{ client, log, role: endpoint, mayPublish: options.mayPublish },
    endpoint: { url, caCertificate: listener.caCertificate },
  })
  publication = published
  return {
    url,
    notReady: () => [...(options.readyz?.().reasons ?? []), ...publicationReasons().map(fullReason)],
    stop: async () => {
      if (options.staysPublished) published.stop()
      else await published.withdraw()
      await listener.close()
    },
  }
}
