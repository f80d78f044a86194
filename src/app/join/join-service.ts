import { randomInt } from 'node:crypto'
import { labels, systemNamespace, workerPoolResource, workerResource } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject, nameErrors, rfc3339 } from '../../kubernetes/object/index.ts'
import { workerOf, workersGroup, workerUserName } from '../authorize.ts'
import { joinedGroup, poolGroup } from '../authorize-joined.ts'
import {
  credentialExpiresAtMs,
  expiresAtAnnotation,
  type JoinTokenRecord,
  joinTokenLabel,
  joinTokenName,
  readJoinToken,
  workerCredentialName,
  workerCredentialSecret,
  workerCredentialType,
} from './join-secrets.ts'
import { parseJoinToken, verifySecret } from './join-token.ts'
import { allowedLabels, credentialLabels } from './worker-labels.ts'

/** A credential is renewed after a third of this: a Run that begins then still has most of it before it. */
const credentialTtlMs = 12 * 3_600_000
/** Invariant 10: workers that joined and whose credentials have not ended. */
const maxCredentials = 10_000
/** Attempts that fail, from all the world: one more after that is refused until a second has passed. */
const maxFailuresPerSecond = 20
const sweepEveryMs = 10 * 60_000

export type IssueToken = (user: {
  name: string
  groups: string[]
  ttlMs: number
  boundTo: { namespace: string; name: string; uid: string }
}) => string

export type JoinServiceOptions = {
  client: Client
  issueToken: IssueToken
  nowMs?: () => number
  /** Default: {@link credentialTtlMs}. */
  ttlMs?: number
}

/** What a worker is told when it may join, or goes on. */
export type JoinResponse = {
  readonly worker: string
  readonly pool: string
  /** Of its Worker, which can have no others. */
  readonly labels: Readonly<Record<string, string>>
  readonly credential: string
  readonly expiresAt: string
  readonly ttlMs: number
}

export type JoinRejection = { readonly code: 401 | 403 | 404 | 409 | 422 | 429; readonly message: string }

/**
 * Exchanges join tokens for credentials of single workers, and old credentials for new ones. A credential opens what
 * `authorize.ts` says a joined worker may do, for some hours, and hangs on a Secret: that deleted, it is worth nothing any more.
 */
export class JoinService {
  readonly #options: JoinServiceOptions
  readonly #nowMs: () => number
  readonly #ttlMs: number
  #failures = { sinceMs: 0, count: 0 }
  #sweptAtMs = Number.NEGATIVE_INFINITY
  /** Credentials that have not ended, as far as is known. */
  #credentials = 0

  constructor(options: JoinServiceOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#ttlMs = options.ttlMs ?? credentialTtlMs
  }

  /**
   * The worker that shows `token` becomes one of the token's pool. Its name is `wanted` and six letters more, so that nobody joins
   * under the name, and with the rights, of a worker that is there; a token made for one name gives that name. Its labels are those
   * of the token, and of `wantedLabels` what that allows.
   */
  async join(token: unknown, wanted: unknown, wantedLabels?: unknown): Promise<JoinResponse | JoinRejection> {
    if (this.#isFlooded()) return { code: 429, message: 'too many join tokens were wrong just now; try again in a second' }
    const record = typeof token === 'string' ? await this.#find(token) : undefined
    if (!record) return this.#failed('the join token is wrong, over, used up or revoked; make one with: oarlock token create')
    const base = wanted === undefined || wanted === '' ? record.pool : wanted
    if (typeof base !== 'string' || base.length > 200 || nameErrors(base, 'dns1123Subdomain').length > 0) {
      return { code: 422, message: 'name must be a lowercase RFC 1123 subdomain of at most 200 characters' }
    }
    const admitted = allowedLabels(record, wantedLabels)
    if ('refused' in admitted) return { code: 403, message: admitted.refused }
    if (!(await this.#options.client.resource(workerPoolResource).getOrUndefined(record.pool))) {
      return { code: 404, message: `the join token is for WorkerPool ${record.pool}, which does not exist` }
    }
    await this.#sweep()
    if (this.#credentials >= maxCredentials) return { code: 429, message: `${maxCredentials} workers have joined; no more are let in` }
    if (!(await this.#use(record))) return this.#failed('the join token is used up; make one with: oarlock token create')
    return await this.#admit(record.worker ?? `${base}-${randomSuffix(6)}`, record, admitted.labels)
  }

  /** A worker that has joined gets a fresh credential; `user` is who the old one says it is. */
  async renew(user: { name: string; groups: readonly string[] } | undefined): Promise<JoinResponse | JoinRejection> {
    const worker = workerOf(user)
    if (worker === undefined || !user?.groups.includes(joinedGroup)) {
      return { code: 401, message: 'only a worker that joined, with a credential that still holds, can have it renewed' }
    }
    const secrets = this.#options.client.resource(secretResource)
    const found = await secrets.getOrUndefined(workerCredentialName(worker), { namespace: systemNamespace })
    const pool = found?.metadata.labels?.[labels.pool]
    if (found?.type !== workerCredentialType || !pool) return { code: 401, message: 'the credential was revoked' }
    const patch = { metadata: { annotations: { [expiresAtAnnotation]: rfc3339(this.#nowMs() + this.#ttlMs) } } }
    await secrets.patch(found.metadata.name, patch, { type: 'merge', namespace: systemNamespace })
    return this.#issue(worker, pool, found)
  }

  async #find(text: string): Promise<JoinTokenRecord | undefined> {
    const token = parseJoinToken(text)
    if (!token) return undefined
    const secret = await this.#options.client
      .resource(secretResource)
      .getOrUndefined(joinTokenName(token.id), { namespace: systemNamespace })
    const record = secret && readJoinToken(secret)
    if (!record || !verifySecret(token.secret, record.hash)) return undefined
    return record.expiresAtMs > this.#nowMs() && record.uses !== 0 ? record : undefined
  }

  /** Counts one use, at the version that was read: two who come at once do not both get the last one. */
  async #use({ id, uses }: JoinTokenRecord): Promise<boolean> {
    if (uses === undefined) return true
    const secrets = this.#options.client.resource(secretResource)
    for (let attempt = 0; attempt < 10; attempt++) {
      const present = await secrets.getOrUndefined(joinTokenName(id), { namespace: systemNamespace })
      const left = (present && readJoinToken(present)?.uses) ?? 0
      if (!present || left <= 0) return false
      try {
        const { name, resourceVersion } = present.metadata
        await secrets.patch(
          name,
          { stringData: { uses: String(left - 1) } },
          { type: 'merge', namespace: systemNamespace, resourceVersion },
        )
        return true
      } catch (error) {
        if (!isReason(error, 'Conflict', 'NotFound')) throw error
      }
    }
    return false
  }

  async #admit(worker: string, { pool, id }: JoinTokenRecord, own: Record<string, string>): Promise<JoinResponse | JoinRejection> {
    const secrets = this.#options.client.resource(secretResource)
    const record = workerCredentialSecret({ worker, pool, tokenId: id, expiresAtMs: this.#nowMs() + this.#ttlMs, labels: own })
    try {
      this.#credentials++
      const made = await secrets.create({ ...record, metadata: { ...record.metadata, namespace: systemNamespace } })
      return this.#issue(worker, pool, made)
    } catch (error) {
      if (isReason(error, 'AlreadyExists')) return { code: 409, message: `worker ${worker} has joined already` }
      throw error
    }
  }

  #issue(worker: string, pool: string, secret: KubeObject<SecretBody>): JoinResponse {
    const { metadata } = secret
    const boundTo = { namespace: systemNamespace, name: metadata.name, uid: metadata.uid }
    const groups = [workersGroup, joinedGroup, poolGroup(pool)]
    const credential = this.#options.issueToken({ name: workerUserName(worker), groups, ttlMs: this.#ttlMs, boundTo })
    return {
      worker,
      pool,
      labels: credentialLabels(secret),
      credential,
      expiresAt: rfc3339(this.#nowMs() + this.#ttlMs),
      ttlMs: this.#ttlMs,
    }
  }

  /** Forgets tokens and credentials that have ended, and credentials whose workers have. */
  async #sweep(): Promise<void> {
    const nowMs = this.#nowMs()
    if (nowMs - this.#sweptAtMs < sweepEveryMs) return
    this.#sweptAtMs = nowMs
    const { client } = this.#options
    const secrets = client.resource(secretResource)
    const [{ items }, workers] = await Promise.all([
      secrets.listAll({ namespace: systemNamespace, labelSelector: joinTokenLabel }),
      client.resource(workerResource).listAll(),
    ])
    const present = new Set(workers.items.map(({ metadata }) => workerCredentialName(metadata.name)))
    const isOver = (secret: KubeObject<SecretBody>): boolean => {
      if (secret.type !== workerCredentialType) return (readJoinToken(secret)?.expiresAtMs ?? nowMs) < nowMs
      const isYoung = nowMs - Date.parse(secret.metadata.creationTimestamp) < sweepEveryMs
      return credentialExpiresAtMs(secret) < nowMs || (!isYoung && !present.has(secret.metadata.name))
    }
    const over = items.filter(isOver)
    for (const { metadata } of over) {
      await secrets.delete(metadata.name, { namespace: systemNamespace, preconditions: { uid: metadata.uid } }).catch((error: unknown) => {
        if (!isReason(error, 'NotFound', 'Conflict')) throw error
      })
    }
    this.#credentials = items.filter(secret => secret.type === workerCredentialType && !isOver(secret)).length
  }

  #isFlooded(): boolean {
    return this.#nowMs() - this.#failures.sinceMs < 1_000 && this.#failures.count >= maxFailuresPerSecond
  }

  #failed(message: string): JoinRejection {
    const nowMs = this.#nowMs()
    if (nowMs - this.#failures.sinceMs >= 1_000) this.#failures = { sinceMs: nowMs, count: 0 }
    this.#failures.count++
    return { code: 401, message }
  }
}

const randomSuffix = (count: number): string =>
  Array.from({ length: count }, () => 'abcdefghijklmnopqrstuvwxyz0123456789'[randomInt(36)]).join('')
