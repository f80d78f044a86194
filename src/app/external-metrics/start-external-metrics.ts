import { join } from 'node:path'
import { systemNamespace, workerPoolResource } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import type { Log, Manager } from '../../kubernetes/controller/index.ts'
import { type KubeObject, StatusError } from '../../kubernetes/object/index.ts'
import { coerceError, type HealthReason } from '../../kubernetes/util/index.ts'
import type { Address } from '../address.ts'
import { AccessReviewer } from '../delegated-auth/access-reviewer.ts'
import type { TokenAuthenticator } from '../delegated-auth/authenticate-by-token-review.ts'
import { startTlsListener, type TlsListener } from '../listener/tls-listener.ts'
import { watchObject } from '../watch-object.ts'
import { type CaBundle, keepCaBundle } from './ca-bundle.ts'
import { createExternalMetricsHandler } from './external-metrics-handler.ts'
import { watchFrontProxy } from './front-proxy.ts'
import { type CertificateMode, servingSecretName } from './names.ts'
import { RetriedTask } from './retried-task.ts'
import { certificateOf, isExpired, renewServingSecret, type ServingCertificate } from './serving-certificate.ts'

export type ExternalMetricsOptions = {
  client: Client
  manager: Pick<Manager, 'informer' | 'leader' | 'leaderClient' | 'add' | 'addReadinessCheck'>
  listen: Address
  certificate: CertificateMode
  dataDir: string
  authenticate: TokenAuthenticator
  log: Log
}

export type ExternalMetrics = {
  /** Undefined while there is no certificate. */
  readonly url: string | undefined
  close(): Promise<void>
}

const renewCheckMs = 12 * 3_600_000
const retryMs = 2_000

/**
 * Serves the aggregated API, as soon as there is a certificate, until it is closed. Call it before the manager starts. The process is not ready
 * before; controllers do not wait for it.
 */
export function startExternalMetrics(options: ExternalMetricsOptions): ExternalMetrics {
  const { client, manager, listen, certificate: mode, authenticate, log } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const subscribers = new Set<() => void>()
  const onChange = () => {
    for (const subscriber of subscribers) subscriber()
  }
  let certificate: ServingCertificate | undefined
  let listener: TlsListener | undefined
  let caBundle: CaBundle | undefined
  const frontProxy = watchFrontProxy(client, { signal, onChange, log })

  const pools = manager.informer(workerPoolResource)
  const handler = createExternalMetricsHandler({
    access: new AccessReviewer(client),
    pools: () => {
      // Without a leader the statuses may be old; an HPA that gets an error keeps its replicas.
      if (!pools.hasSynced || manager.leader === undefined)
        throw new StatusError('ServiceUnavailable', pools.hasSynced ? 'no leader elected yet' : 'workerpool cache not synced')
      return pools.list()
    },
    nowMs: Date.now,
  })

  const opening = new RetriedTask({
    work: async () => {
      if (listener || !certificate) return
      listener = await startTlsListener({
        ...{ role: 'external metrics', listenOption: '--external-metrics', dataDir: options.dataDir, listen, names: [], authenticate },
        source: {
          current: () => ({ certificate: certificate!.certificate, key: certificate!.key, clientCa: frontProxy.config?.clientCa ?? '' }),
          subscribe: subscriber => {
            subscribers.add(subscriber)
            return () => void subscribers.delete(subscriber)
          },
          userOf: frontProxy.userOf,
        },
        mounts: ['/apis', '/openapi/'].map(prefix => ({ prefix, handler })),
        notReady: () => [],
        onError: error => log.error({ err: error }, 'request for external metrics failed'),
      })
    },
    onError: err => log.error({ err }, 'failed to serve external metrics, retrying'),
    ...{ retryMs, signal },
  })

  let found: KubeObject<SecretBody> | undefined
  const renewal = new RetriedTask({
    work: async () => await renewServingSecret(client, found, join(options.dataDir, 'external-metrics')),
    onError: err => log.warn({ err, secret: servingSecretName }, 'failed to renew the certificate of external metrics, retrying'),
    ...{ retryMs, signal },
  })
  watchObject(client, secretResource, {
    ...{ namespace: systemNamespace, name: servingSecretName, signal },
    onChange: secret => {
      found = secret
      if (mode === 'Own') renewal.request()
      const next = certificateOf(secret)
      // While the Secret is missing, the last certificate is served: kube-apiserver still trusts it.
      if (!next) return
      certificate = next
      opening.request()
      onChange()
      caBundle?.set(next.ca)
    },
    onError: (error, retryInMs) => log.warn({ err: coerceError(error), retryInMs }, `failed to watch Secret ${servingSecretName}`),
  })
  const renewTimer = setInterval(() => mode === 'Own' && renewal.request(), renewCheckMs).unref()

  const notServed = (): HealthReason | undefined => {
    if (opening.failure) return { reason: 'external metrics cannot be served', detail: opening.failure }
    // While a valid certificate is served, a failed renewal is only logged.
    if (listener && certificate && !isExpired(certificate, Date.now())) return undefined
    if (renewal.failure) return { reason: 'the certificate of external metrics cannot be renewed', detail: renewal.failure }
    if (listener) return 'the certificate of external metrics has expired or is damaged'
    const waiting = mode === 'Own' ? 'is not issued yet' : `is not in Secret ${systemNamespace}/${servingSecretName} yet`
    return `the certificate of external metrics ${waiting}`
  }
  manager.addReadinessCheck(() => {
    const reason = notServed()
    return [...(reason === undefined ? [] : [reason]), ...frontProxy.notReady()]
  })
  manager.add({
    name: 'keep the CA of the APIService',
    start: async leaderSignal => {
      // Not `client`: a former leader may have an older certificate.
      caBundle = keepCaBundle(manager.leaderClient, { signal: leaderSignal, log })
      caBundle.set(certificate?.ca)
      await new Promise<void>(resolve => leaderSignal.addEventListener('abort', () => resolve(), { once: true }))
      caBundle = undefined
    },
  })
  return {
    get url() {
      return listener?.url
    },
    close: async () => {
      stopping.abort()
      clearInterval(renewTimer)
      await Promise.all([renewal.idle, opening.idle])
      await listener?.close()
    },
  }
}
