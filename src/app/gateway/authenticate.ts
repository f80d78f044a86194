import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { accountNamespace, type ClientRequest, type GatewayUser, systemNamespaces } from '../../gateway/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import type { TokenAuthenticator } from '../delegated-auth/authenticate-by-token-review.ts'

export type GatewayAuthenticatorOptions = {
  readonly home: string
  /** The partition of the namespace that a token claims; undefined if none has it. @throws {StatusError} if it is not known. */
  partitionOf(namespace: string, remoteAddress: string | undefined): Promise<string | undefined>
  /** Reviews tokens at a partition; undefined if it is not known. */
  reviewAt(partition: string): TokenAuthenticator | undefined
}

const authenticatedGroup = 'system:authenticated'
/** A connection need not look its token up again for this long. */
export const connectionTrustMs = 1_000

type TokenUser = { readonly authorization: string; readonly user: GatewayUser; readonly untilMs: number }

/** The last valid token of a connection: most clients send the same one with every request. */
const tokensOfConnections = new WeakMap<Socket, TokenUser>()

/**
 * Authenticates a request by the client certificate of its connection, which TLS has verified with the authority that all partitions share, or by
 * its bearer token. The token of a ServiceAccount is reviewed by the partition that has the account, any other by home.
 * @returns undefined without a valid credential.
 * @throws {StatusError} ServiceUnavailable if that partition does not answer.
 */
export async function authenticate(request: ClientRequest, options: GatewayAuthenticatorOptions): Promise<GatewayUser | undefined> {
  const { authorization } = request.headers
  if (authorization === undefined) return certificateUser(request.socket as TLSSocket)
  const last = tokensOfConnections.get(request.socket)
  if (last?.authorization === authorization && performance.now() < last.untilMs) return last.user
  const untilMs = performance.now() + connectionTrustMs
  const user = await tokenUser(authorization, request, options)
  if (user) tokensOfConnections.set(request.socket, { authorization, user, untilMs })
  return user
}

async function tokenUser(
  authorization: string,
  request: ClientRequest,
  options: GatewayAuthenticatorOptions,
): Promise<GatewayUser | undefined> {
  const token = /^bearer +(\S+)$/i.exec(authorization)?.[1]
  if (token === undefined) return undefined
  const { remoteAddress } = request.socket
  const namespace = accountNamespace(token)
  const isAtHome = namespace === undefined || systemNamespaces.includes(namespace)
  const owner = isAtHome ? options.home : await options.partitionOf(namespace, remoteAddress)
  const review = owner === undefined ? undefined : options.reviewAt(owner)
  return await review?.(token, remoteAddress).catch(cause => notReviewed(owner, cause))
}

/** @throws {StatusError} ServiceUnavailable or, as the partition has answered, TooManyRequests. */
function notReviewed(partition: string | undefined, cause: unknown): never {
  if (cause instanceof StatusError && cause.code === 429) throw cause
  const message = `partition ${JSON.stringify(partition)} does not review the token: ${(cause as Error).message}`
  throw new StatusError('ServiceUnavailable', message, { cause, details: { retryAfterSeconds: 1 } })
}

type CertificateUser = { readonly user: GatewayUser | undefined; readonly expiresMs: number }

/** A connection has one certificate to its end, and reading it takes longer than the rest of a request. */
const usersOfConnections = new WeakMap<TLSSocket, CertificateUser>()

/** The user of the certificate of a connection, until it expires. */
function certificateUser(socket: TLSSocket): GatewayUser | undefined {
  if (!socket.authorized) return undefined
  let known = usersOfConnections.get(socket)
  if (!known) {
    known = readCertificate(socket)
    usersOfConnections.set(socket, known)
  }
  return known.expiresMs > Date.now() ? known.user : undefined
}

/** The user that a certificate names: CN, with its groups O. */
function readCertificate(socket: TLSSocket): CertificateUser {
  const { subject, valid_to: validTo } = socket.getPeerCertificate()
  const [name] = listOf(subject?.CN)
  const user = name ? { name, groups: [...new Set([...listOf(subject?.O), authenticatedGroup])] } : undefined
  return { user, expiresMs: Date.parse(validTo) }
}

/** Repeated attributes are an array, although the types declare a string. */
const listOf = (value: string | string[] | undefined): string[] => (value === undefined ? [] : Array.isArray(value) ? value : [value])
