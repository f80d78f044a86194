/**
 * @module app/listener: the HTTPS listener of a role that runs apart from the API server. Start reading here; `published-listener.ts` also publishes
 * its address and serves its metrics.
 * In: an address, a data directory for certificates, routes. Out: a listener that authenticates requests by bearer tokens.
 * Out of scope: authorization, which is up to each route.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isReason, StatusError } from '../../kubernetes/object/index.ts'
import { Fairness, type PathAudit, readServingCertificates } from '../../kubernetes/server/index.ts'
import {
  atMostEvery,
  ConnectionLimiter,
  type ConnectionLimits,
  connectionLimits,
  LimitExceededError,
  lingerOnClose,
  makeDirectories,
  networkOf,
  respondToHealthCheck,
  sendContinue,
} from '../../kubernetes/util/index.ts'
import { type Address, urlOf } from '../address.ts'
import type { TokenAuthenticator } from '../delegated-auth/authenticate-by-token-review.ts'
import { type Impersonate, isImpersonation } from '../delegated-auth/impersonation.ts'
import type { ReviewedUser } from '../delegated-auth/review-resources.ts'
import type { Mount } from '../mount.ts'
import { listenError, toAppStartError } from '../to-app-start-error.ts'
import { type CertificateFiles, readCertificateFiles, watchCertificateFiles } from './certificate-files.ts'

/** Where a role serves others. */
export type RoleListenerOptions = {
  listen: Address
  /** Additional host names and IP addresses for the certificate. */
  names: readonly string[]
  certificateFiles?: CertificateFiles | undefined
  /** The URL at which others reach this role. Default: that of the listener. */
  advertiseUrl?: string | undefined
}

export type ListenerLimits = {
  /** Default: {@link connectionLimits}. */
  connections?: Partial<ConnectionLimits>
  /** Time for the TLS handshake. Default 10,000. */
  handshakeMs?: number
  /** Time for the body of a request without a valid token. Default 60,000. */
  unreadBodyMs?: number
  /** Time between two reads of `certificateFiles`. Default 60,000. */
  certificateCheckMs?: number
}

/** A certificate that others keep, and the authority of clients that kube-apiserver sends requests for. */
export type TlsSource = {
  /** PEM. */
  current(): { certificate: string; key: string; clientCa: string }
  /** Calls `listener` after each change. Returns a function that ends it. */
  subscribe(listener: () => void): () => void
  /** The user of a request on a connection whose client certificate was verified with `clientCa`. Default: requests need a bearer token. */
  userOf(request: IncomingMessage): ReviewedUser | undefined
}

export type TlsListenerOptions = {
  /** For messages: `state and log stores`. */
  role: string
  /** For messages. */
  listenOption?: string
  /** Holds the certificate authority and the serving certificate in `pki/`, which are created if they are missing. */
  dataDir: string
  /** Replaces the certificates in `dataDir`, and authenticates by client certificates too. */
  source?: TlsSource | undefined
  listen: Address
  /** Additional host names and IP addresses for the certificate. */
  names: readonly string[]
  /** A certificate from elsewhere; then none is created. Its files are read again every minute: who issued it renews it. */
  certificateFiles?: CertificateFiles | undefined
  /** The user of a bearer token; undefined if it is invalid. A rejection means that the token could not be reviewed. */
  authenticate: TokenAuthenticator
  /** Decides who may send requests as another user (`Impersonate-User`). Default: no one. */
  impersonate?: Impersonate | undefined
  mounts: readonly Mount[]
  /** The reasons why the role is not ready; empty if it is. Served without authentication as /readyz (`publicReason`); /livez and /healthz are always ok. */
  notReady(): readonly string[]
  /** Called when the authority in `certificateFiles` was replaced. */
  onCaChange?(caCertificate: string | undefined): void
  /** Records requests of authenticated users. Default: none are recorded. */
  audit?: Pick<PathAudit, 'begin'> | undefined
  onError(error: unknown): void
  limits?: ListenerLimits | undefined
}

export type TlsListener = {
  readonly url: string
  /** PEM of the certificate authority; undefined for those of the system. A new one is reported to `onCaChange`. */
  readonly caCertificate: string | undefined
  close(): Promise<void>
}

/**
 * The HTTPS listener of a role that runs apart from the API server. Requests carry the same bearer tokens as requests to the API server;
 * a token of a Stack, which only the state store knows, is passed to the mount as a request without a user.
 * @throws {AppStartError} if the address or the data directory cannot be used.
 */
export async function startTlsListener(options: TlsListenerOptions): Promise<TlsListener> {
  const { role, listenOption = '--listen', dataDir, listen, names, certificateFiles, source, onError } = options
  const fromFiles = source || !certificateFiles ? undefined : readCertificateFiles(certificateFiles)
  const tls = source ? undefined : (fromFiles ?? (await createCertificates(dataDir, listen.host, names)))
  const { createServer } = process.getBuiltinModule('node:https')
  const onReviewError = atMostEvery(logIntervalMs, onError)
  const { handshakeMs = 10_000, unreadBodyMs = 60_000, certificateCheckMs = 60_000 } = options.limits ?? {}
  const limiter = new ConnectionLimiter({ ...connectionLimits().server, ...options.limits?.connections })
  const fairness = new Fairness()
  const contextOf = ({ certificate, key, clientCa }: { certificate: string; key: string; clientCa?: string }) =>
    ({ cert: certificate, key, minVersion: 'TLSv1.2', ...(clientCa !== undefined && { ca: clientCa }) }) as const
  const context = contextOf(source?.current() ?? tls!)
  // A client without a certificate may still have a token: what it sent is checked for each request.
  const clientCertificates = { requestCert: source !== undefined, rejectUnauthorized: false }
  const server = createServer({ ...context, ...clientCertificates, handshakeTimeout: handshakeMs }, (request, response) => {
    response.on('error', () => {})
    const bodyTimer = setTimeout(() => request.complete || request.socket.destroy(), unreadBodyMs).unref()
    response.once('close', () => {
      // Node reads the rest of a body after the response, without a limit.
      if (request.complete) clearTimeout(bodyTimer)
    })
    const admit = (user: string) => {
      if (!limiter.admit(request.socket, user)) return false
      clearTimeout(bodyTimer)
      return true
    }
    serve(options, { onReviewError, admit, fairness }, request, response).catch(error => {
      if (error instanceof StatusError && error.code === 429 && !response.headersSent) {
        response.setHeader('Retry-After', '1')
        return sendText(response, 429, error.message)
      }
      onError(error)
      if (response.headersSent) response.destroy()
      else sendText(response, 500, 'internal error')
    })
  })
  limiter.limit(server)
  server.headersTimeout = 30_000
  // Bodies of authenticated clients, such as states, have a limit of idle time instead, in the handlers that read them.
  server.requestTimeout = 0
  sendContinue(server)
  lingerOnClose(server)
  server.on('tlsClientError', (_error, socket) => socket.destroy())
  server.on('clientError', (_error, socket) => socket.destroy())
  const certificateTimer = certificateFiles || source ? undefined : setInterval(() => void renew(), renewCheckMs).unref()
  const renew = async () => {
    try {
      server.setSecureContext(contextOf(await createCertificates(dataDir, listen.host, names)))
    } catch (error) {
      onError(error)
    }
  }
  let caCertificate = tls?.ca
  const endWatch =
    fromFiles &&
    watchCertificateFiles(certificateFiles!, {
      ...{ current: fromFiles, intervalMs: certificateCheckMs, onError: atMostEvery(fileErrorIntervalMs, onError) },
      onChange: next => {
        server.setSecureContext(contextOf(next))
        if (next.ca === caCertificate) return
        caCertificate = next.ca
        options.onCaChange?.(next.ca)
      },
    })
  let clientCa = context.ca
  const unsubscribe = source?.subscribe(() => {
    const changed = contextOf(source.current())
    server.setSecureContext(changed)
    // Clients on these connections were verified with the authority before.
    if (changed.ca !== clientCa) server.closeAllConnections()
    clientCa = changed.ca
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', error => reject(listenError(role, listenOption, `${listen.host}:${listen.port}`, error)))
    server.listen(listen.port, listen.host, resolve)
  })
  // Such as EMFILE while connections are accepted: an 'error' event without a listener would end the process.
  server.on('error', atMostEvery(logIntervalMs, onError))
  const { port } = server.address() as AddressInfo
  return {
    url: urlOf('https', { host: listen.host, port }),
    get caCertificate() {
      return caCertificate
    },
    close: () => {
      clearInterval(certificateTimer)
      endWatch?.()
      unsubscribe?.()
      return closeServer(server)
    },
  }
}

/** One line per interval: a client without a valid token must not fill the log. */
const logIntervalMs = 10_000

const renewCheckMs = 12 * 3_600_000
/** A line per hour for files that stay wrong. */
const fileErrorIntervalMs = 3_600_000

/** The certificate authority and the serving certificate of a role, in `pki/` of its data directory; created if they are missing or expire soon. */
export async function createCertificates(dataDir: string, host: string, names: readonly string[]) {
  const directory = join(dataDir, 'pki')
  try {
    makeDirectories(directory, 0o700)
    return await readServingCertificates(directory, host, Date.now(), names)
  } catch (error) {
    throw toAppStartError(error, { dataDir, listen: '' })
  }
}

async function serve(
  options: TlsListenerOptions,
  { onReviewError, admit, fairness }: { onReviewError(error: unknown): void; admit(user: string): boolean; fairness: Fairness },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (respondToHealthCheck({ livez: () => [], readyz: options.notReady }, request, response)) return
  const path = (request.url ?? '/').split('?')[0] ?? '/'
  const mount = options.mounts.find(({ prefix }) => path.startsWith(prefix))
  if (!mount) {
    const served = options.mounts.map(({ prefix }) => prefix).join(', ')
    return sendText(response, 404, `not found: use ${served}, /livez or /readyz`)
  }
  const [scheme = '', token = ''] = (request.headers.authorization ?? '').split(' ', 2)
  const isBearer = scheme.toLowerCase() === 'bearer' && token !== ''
  const authenticate = async () => {
    const holder =
      options.source?.userOf(request) ?? (isBearer ? await options.authenticate(token, request.socket.remoteAddress) : undefined)
    if (!holder || !isImpersonation(request)) return holder
    if (!options.impersonate) throw new StatusError('Forbidden', 'impersonation is not supported here')
    return await options.impersonate(holder, request)
  }
  let user: ReviewedUser | undefined
  try {
    user = await authenticate()
  } catch (error) {
    if (isReason(error, 'Forbidden')) return sendText(response, 403, error.message)
    response.setHeader('Retry-After', '1')
    if (error instanceof LimitExceededError) return sendText(response, 429, error.message)
    onReviewError(error)
    return sendText(response, 503, 'the API server could not review the token')
  }
  if (user && !admit(user.name)) {
    response.setHeader('Retry-After', '1')
    return sendText(response, 503, 'this user has too many connections: close some, or retry later')
  }
  const audit = (audited: ReviewedUser) => options.audit?.begin(request, response, audited)
  if (user) audit(user)
  const reauthenticate = async () => (isBearer ? await authenticate() : undefined)
  const handle = async () => {
    if (!response.destroyed) await mount.handler(request, response, { user, reauthenticate, audit })
  }
  if (user) await fairness.start(user.name, 'user', handle)
  else await fairness.start(networkOf(request.socket.remoteAddress), 'network', handle)
}

function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' }).end(`${text}\n`)
}

/** Requests in progress may end within this time. */
const closeGraceMs = 5_000

function closeServer(server: Server): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(() => server.closeAllConnections(), closeGraceMs)
    server.close(() => {
      clearTimeout(timer)
      resolve()
    })
    server.closeIdleConnections()
  })
}
