import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import { type Client, configMapResource } from '../../kubernetes/client/index.ts'
import type { Log } from '../../kubernetes/controller/index.ts'
import { coerceError, type HealthReason } from '../../kubernetes/util/index.ts'
import type { ReviewedUser } from '../delegated-auth/review-resources.ts'
import { watchObject } from '../watch-object.ts'
import { type FrontProxyConfig, frontProxyConfig, frontProxyUser } from './front-proxy-identity.ts'

const configMapName = 'extension-apiserver-authentication'

export type FrontProxy = {
  /** Undefined while it is not known: then no client certificate is accepted. */
  readonly config: FrontProxyConfig | undefined
  notReady(): HealthReason[]
  userOf(request: IncomingMessage): ReviewedUser | undefined
}

/** Follows how kube-apiserver identifies itself to aggregated APIs; `onChange` is called when `config` has changed. */
export function watchFrontProxy(
  client: Client,
  { signal, onChange, log }: { signal: AbortSignal; onChange(): void; log: Log },
): FrontProxy {
  let config: FrontProxyConfig | undefined
  let reason: HealthReason | undefined = 'the front proxy CA of the API server is not known yet'
  watchObject(client, configMapResource, {
    ...{ namespace: 'kube-system', name: configMapName, signal },
    onChange: object => {
      try {
        config = frontProxyConfig(object?.data)
        reason = config
          ? undefined
          : `the API server has no requestheader CA in ConfigMap kube-system/${configMapName}: it aggregates no API`
      } catch (error) {
        config = undefined
        reason = { reason: 'the front proxy settings of the API server are malformed', detail: coerceError(error) }
      }
      onChange()
    },
    onError: (error, retryInMs) => {
      // What is known stays valid while the API server does not answer.
      if (!config) reason = { reason: `ConfigMap kube-system/${configMapName} cannot be read`, detail: coerceError(error) }
      log.warn({ err: coerceError(error), retryInMs }, `failed to watch ConfigMap kube-system/${configMapName}`)
    },
  })
  return {
    get config() {
      return config
    },
    notReady: () => (reason === undefined ? [] : [reason]),
    userOf: request => config && frontProxyUser(config, verifiedName(request), request.headersDistinct),
  }
}

/**
 * The common name of the client certificate, if it was verified. Not `authorized` alone: with TLS 1.3, Node.js also sets it for a resumed session
 * without a certificate.
 */
function verifiedName({ socket }: IncomingMessage): string | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  const { subject } = socket.getPeerCertificate()
  return typeof subject?.CN === 'string' ? subject.CN : undefined
}
