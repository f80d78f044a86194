import { hash, randomUUID, timingSafeEqual } from 'node:crypto'
import { isJsonObject } from '../../object/index.ts'
import { parseEntry, type Store, type StoredEntry, type Table } from '../storage/index.ts'
import type { SigningKey } from './signing-key.ts'
import type { VerifiedToken } from './tokens.ts'
import { authenticatedUser, type User } from './user.ts'

/** As in most clusters, so that programs written for Kubernetes find the audience they expect. */
const defaultIssuer = 'https://kubernetes.default.svc'
const legacyIssuer = 'kubernetes/serviceaccount'
const legacyPrefix = 'kubernetes.io/serviceaccount'

// Tokens stay valid for this long after the deletion of their object began, as in Kubernetes, so that a Pod can still call the API while it
// shuts down.
const deletionGraceMs = 60_000
// A clock that was set back must not invalidate a token that was just issued.
const clockSkewMs = 60_000

const serviceAccountPrefix = 'system:serviceaccount:'

export type Reference = { readonly name: string; readonly uid: string }

/** The claims of a token. A bound token is invalid as soon as its Pod, Secret or Node is deleted. */
export type ServiceAccountGrant = {
  readonly namespace: string
  readonly account: Reference
  readonly pod?: Reference
  readonly secret?: Reference
  readonly node?: Reference
  readonly audiences: readonly string[]
  readonly expirationSeconds: number
}

/** A valid token; `audiences` are the requested audiences that it was issued for. */
export type ReviewedToken = VerifiedToken & { readonly audiences: readonly string[] }

/**
 * Tokens of service accounts: signed JSON Web Tokens with kube-apiserver's claims. They are not stored. Each use checks that the account
 * and the bound object still exist with the same UIDs, so that deleting one of them invalidates the token immediately.
 */
export class ServiceAccountTokens {
  readonly issuer: string
  /** The audiences of this server. */
  readonly audiences: readonly string[]
  readonly key: SigningKey
  readonly #store: Store
  readonly #accounts: Table
  readonly #secrets: Table
  readonly #pods: Table
  readonly #nodes: Table

  constructor(store: Store, key: SigningKey, issuer = defaultIssuer) {
    this.#store = store
    this.key = key
    this.issuer = issuer
    this.audiences = [issuer]
    this.#accounts = store.table('serviceaccounts')
    this.#secrets = store.table('secrets')
    this.#pods = store.table('pods')
    this.#nodes = store.table('nodes')
  }

  issue({ namespace, account, pod, secret, node, audiences, expirationSeconds }: ServiceAccountGrant, nowMs: number): string {
    const now = Math.floor(nowMs / 1_000)
    return this.key.sign({
      aud: audiences,
      exp: now + expirationSeconds,
      iat: now,
      iss: this.issuer,
      jti: randomUUID(),
      'kubernetes.io': { namespace, ...(node && { node }), ...(pod && { pod }), ...(secret && { secret }), serviceaccount: account },
      nbf: now,
      sub: `${serviceAccountPrefix + namespace}:${account.name}`,
    })
  }

  /** The token of a Secret of type `kubernetes.io/service-account-token`. It does not expire and is valid while both objects exist. */
  issueForSecret(namespace: string, account: Reference, secretName: string): string {
    return this.key.sign({
      iss: legacyIssuer,
      [`${legacyPrefix}/namespace`]: namespace,
      [`${legacyPrefix}/secret.name`]: secretName,
      [`${legacyPrefix}/service-account.name`]: account.name,
      [`${legacyPrefix}/service-account.uid`]: account.uid,
      sub: `${serviceAccountPrefix + namespace}:${account.name}`,
    })
  }

  /** The user of a token, or why it is invalid; undefined if another issuer signed it. */
  read(token: string, desired: readonly string[], nowMs: number): ReviewedToken | string | undefined {
    const claims = this.key.read(token)
    if (claims?.iss === this.issuer) return this.#readBound(claims, desired, nowMs)
    if (claims?.iss === legacyIssuer) return this.#readLegacy(token, claims, desired)
    return undefined
  }

  #readBound(claims: Record<string, unknown>, desired: readonly string[], nowMs: number): ReviewedToken | string {
    const { exp, nbf, jti, aud } = claims
    const { namespace, serviceaccount, pod, secret, node } = (claims['kubernetes.io'] ?? {}) as Record<string, unknown>
    const provided = Array.isArray(aud) ? aud : [aud]
    const audiences = desired.filter(audience => provided.includes(audience))
    if (audiences.length === 0) return `token audiences ${formatList(provided)} is invalid for the target audiences ${formatList(desired)}`
    if (typeof exp !== 'number' || exp * 1_000 <= nowMs) return 'service account token has expired'
    if (typeof nbf !== 'number' || nbf * 1_000 > nowMs + clockSkewMs) return 'service account token is not valid yet'
    if (typeof namespace !== 'string' || !isReference(serviceaccount)) return 'service account token claims could not be validated'
    // In a token that is bound to a Pod, the node is for information only.
    const bound: { table: Table; key: string; uid: string }[] = []
    if (isReference(pod)) bound.push({ table: this.#pods, key: `${namespace}/${pod.name}`, uid: pod.uid })
    else if (isReference(node)) bound.push({ table: this.#nodes, key: node.name, uid: node.uid })
    if (isReference(secret)) bound.push({ table: this.#secrets, key: `${namespace}/${secret.name}`, uid: secret.uid })
    const accountKey = `${namespace}/${serviceaccount.name}`
    const isLive = () =>
      this.#vouchesFor(this.#accounts.get(accountKey), serviceaccount.uid) &&
      bound.every(({ table, key, uid }) => this.#vouchesFor(table.get(key), uid))
    if (!this.#vouchesFor(this.#accounts.get(accountKey), serviceaccount.uid)) return `service account ${accountKey} has been deleted`
    if (!isLive()) return 'service account token has been invalidated'
    const prefix = 'authentication.kubernetes.io'
    const extra: Record<string, string[]> = {}
    if (typeof jti === 'string') extra[`${prefix}/credential-id`] = [`JTI=${jti}`]
    if (isReference(node)) Object.assign(extra, { [`${prefix}/node-name`]: [node.name], [`${prefix}/node-uid`]: [node.uid] })
    if (isReference(pod)) Object.assign(extra, { [`${prefix}/pod-name`]: [pod.name], [`${prefix}/pod-uid`]: [pod.uid] })
    return { user: userOf(namespace, serviceaccount, extra), expiresMs: exp * 1_000, isLive, audiences }
  }

  #readLegacy(token: string, claims: Record<string, unknown>, desired: readonly string[]): ReviewedToken | string {
    const audiences = desired.filter(audience => this.audiences.includes(audience))
    if (audiences.length === 0)
      return `token audiences ${formatList(this.audiences)} is invalid for the target audiences ${formatList(desired)}`
    const namespace = claims[`${legacyPrefix}/namespace`]
    const secretName = claims[`${legacyPrefix}/secret.name`]
    const account = { name: claims[`${legacyPrefix}/service-account.name`], uid: claims[`${legacyPrefix}/service-account.uid`] }
    if (typeof namespace !== 'string' || typeof secretName !== 'string' || !isReference(account)) return 'sub claim is invalid'
    let seen: StoredEntry | undefined
    const isLive = () => {
      const secret = this.#secrets.get(`${namespace}/${secretName}`)
      const owner = this.#accounts.get(`${namespace}/${account.name}`)
      if (!secret || secret.deleting || owner?.uid !== account.uid || owner.deleting) return false
      // The Secret is parsed again only after it was written.
      if (secret !== seen && !containsToken(secret, token)) return false
      seen = secret
      return true
    }
    if (!isLive()) return 'Token has been invalidated'
    return { user: userOf(namespace, account, undefined), expiresMs: Number.POSITIVE_INFINITY, isLive, audiences }
  }

  #vouchesFor(entry: StoredEntry | undefined, uid: string): boolean {
    if (entry?.uid !== uid) return false
    if (!entry.deleting) return true
    const { deletionTimestamp = '' } = parseEntry(entry).metadata
    return Date.parse(deletionTimestamp) > this.#store.nowMs - deletionGraceMs
  }
}

function userOf(namespace: string, { name, uid }: Reference, extra: User['extra']): User {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
  return { ...authenticatedUser(`${serviceAccountPrefix + namespace}:${name}`, groups), uid, ...(extra && { extra }) }
}

function containsToken(secret: StoredEntry, token: string): boolean {
  const { data } = parseEntry(secret)
  const stored = isJsonObject(data) && typeof data.token === 'string' ? Buffer.from(data.token, 'base64').toString() : ''
  return timingSafeEqual(hash('sha256', stored, 'buffer'), hash('sha256', token, 'buffer'))
}

function isReference(value: unknown): value is Reference {
  return isJsonObject(value) && typeof value.name === 'string' && typeof value.uid === 'string'
}

const formatList = (values: readonly unknown[]) => JSON.stringify(values)
