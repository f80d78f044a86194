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
import { certificateOf, renewServingSecret, type ServingCertificate } from './serving-certificate.ts'

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
  let opening: Promise<void> | undefined
  let caBundle: CaBundle | undefined
  let failure: HealthReason | undefined
  const frontProxy = watchFrontProxy(client, { signal, onChange, log })

  const pools = manager.informer(workerPoolResource)
  const handler = createExternalMetricsHandler({
    access: new AccessReviewer(client),
    pools: () => {
      // Without a leader the statuses may be old; an HPA that gets an error keeps its replicas.
      if (!pools.hasSynced || manager.leader === undefined)
        throw new StatusError(
          'ServiceUnavailable',
          pools.hasSynced ? 'no controller leads yet' : 'the cache of workerpools is not filled yet',
        )
      return pools.list()
    },
    nowMs: Date.now,
  })

  const open = async () => {
    try {
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
      failure = undefined
    } catch (error) {
      opening = undefined
      failure = { reason: 'external metrics cannot be served', detail: coerceError(error) }
      log.error({ err: coerceError(error) }, 'failed to serve external metrics, retrying')
      retry(update)
    }
  }
  const retry = (work: () => void) => {
    setTimeout(() => signal.aborted || work(), retryMs).unref()
  }
  const update = () => {
    if (signal.aborted) return
    if (!certificate) return
    opening ??= open()
    onChange()
    caBundle?.set(certificate.ca)
  }

  let found: KubeObject<SecretBody> | undefined
  let renewing = Promise.resolve()
  const renew = () => {
    renewing = renewing.then(async () => {
      if (signal.aborted) return
      try {
        await renewServingSecret(client, found, join(options.dataDir, 'external-metrics'))
      } catch (error) {
        failure = { reason: 'the certificate of external metrics cannot be renewed', detail: coerceError(error) }
        log.warn({ err: coerceError(error), secret: servingSecretName }, 'failed to renew the certificate of external metrics, retrying')
        retry(renew)
      }
    })
  }
  watchObject(client, secretResource, {
    ...{ namespace: systemNamespace, name: servingSecretName, signal },
    onChange: secret => {
      found = secret
      if (mode === 'Own') renew()
      const next = certificateOf(secret)
      // While the Secret is missing, the last certificate is served: kube-apiserver still trusts it.
      if (!next) return
      certificate = next
      failure = undefined
      update()
    },
    onError: (error, retryInMs) => log.warn({ err: coerceError(error), retryInMs }, `failed to watch Secret ${servingSecretName}`),
  })
  const renewTimer = setInterval(() => mode === 'Own' && renew(), renewCheckMs).unref()

  manager.addReadinessCheck(() => {
    const waiting = mode === 'Own' ? 'is not issued yet' : `is not in Secret ${systemNamespace}/${servingSecretName} yet`
    const reasons = failure === undefined ? [] : [failure]
    if (!listener && failure === undefined) reasons.push(`the certificate of external metrics ${waiting}`)
    return [...reasons, ...frontProxy.notReady()]
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
      await Promise.all([renewing, opening])
      await listener?.close()
    },
  }
}
