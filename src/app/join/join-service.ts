import { randomInt } from 'node:crypto'
import { isStartRequested, labels, systemNamespace, workerPoolResource, workerResource, workersNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject, nameErrors, rfc3339 } from '../../kubernetes/object/index.ts'
import { ClientLimiter, type ClientLimits, LimitExceededError, networkOf } from '../../kubernetes/util/index.ts'
import type { Endpoint } from '../discovery/index.ts'
import { podOf, reservedNameError, workerOf } from '../worker-identity.ts'
import {
  credentialExpiresAtMs,
  endedAtAnnotation,
  expiresAtAnnotation,
  type JoinTokenRecord,
  joinTokenFromSecret,
  joinTokenLabel,
  joinTokenName,
  listJoinSecrets,
  mayRegister,
  workerCredentialName,
  workerCredentialSecret,
  workerCredentialType,
} from './join-secrets.ts'
import { type JoinToken, parseJoinToken, verifySecret } from './join-token.ts'
import { allowedLabels, credentialLabels, workerLabelsAnnotation } from './worker-labels.ts'

/**
 * A credential is renewed after a third of this: an API server may be unavailable for 40 minutes. A worker that cannot renew its Lease for
 * 10 s has stopped its engines long before.
 */
const credentialTtlMs = 3_600_000
/** Credentials of workers that have neither expired nor ended (invariant 10), of all and of one token: who has a token must not keep the workers of others out. */
const maxCredentials = { all: 10_000, perToken: 5_000 }
/** Joins with one valid token write up to three objects each. */
const joinLimits: ClientLimits = { concurrent: 32, concurrentPerClient: 8, waitingPerClient: 256, waiting: 2_048 }
/**
 * The lookups of tokens, each one request to the API server, are limited per address of the client. Attempts are not: the secret of a
 * token has 256 random bits, which cannot be guessed, and a limit that is shared would let anyone stop the joins of others.
 */
const lookupLimits: ClientLimits = { concurrent: 32, concurrentPerClient: 8, waitingPerClient: 256, waiting: 2_048 }
const sweepEveryMs = 10 * 60_000
/** When a limit seems to be reached: credentials may have ended since the last sweep. */
const recountEveryMs = 5_000

/**
 * Issues a credential that is valid for about `ttlMs` and only as long as `record`, the Secret in `oarlock-workers` that records it, exists.
 * There are two: {@link serverTokenIssuer} and {@link serviceAccountIssuer}.
 */
export type IssueCredential = (request: CredentialRequest) => Promise<{ credential: string; expiresAtMs: number }>

export type CredentialRequest = {
  worker: string
  pool: string
  /** The worker joined with a token; this host did not start it. */
  hasJoined: boolean
  ttlMs: number
  record: KubeObject<SecretBody>
}

/** Where a worker that has joined finds the API server and the stores. */
export type Destinations = {
  /** The API server. Default: the address that the worker joined at. */
  readonly server?: Endpoint
  /** The state and log stores. Default: the API server. */
  readonly stores?: Endpoint
}

export type JoinServiceOptions = {
  client: Client
  issueCredential: IssueCredential
  /** Default: all at the address that the worker joined at. A rejection if they are not known yet: the worker retries. */
  destinations?(): Promise<Destinations | JoinRejection>
  nowMs?: () => number
  /** Default: {@link credentialTtlMs}. */
  ttlMs?: number
  /** Default: {@link maxCredentials}. */
  maxCredentials?: { all: number; perToken: number }
}

/** The response to a worker that joins, or renews its credential. */
export type JoinResponse = Destinations & {
  readonly worker: string
  readonly pool: string
  /** The labels of its Worker, which can have no others. */
  readonly labels: Readonly<Record<string, string>>
  readonly credential: string
  readonly expiresAt: string
  readonly ttlMs: number
}

export type JoinRejection = { readonly code: 401 | 403 | 404 | 409 | 422 | 429 | 503; readonly message: string }

const credentialRevoked: JoinRejection = { code: 401, message: 'the credential is revoked' }

/**
 * Issues the credentials of workers: for a join token, to a process that this host starts, and for the previous credential. A credential is
 * valid for an hour, grants what `authorize-worker.ts` permits, and is bound to a Secret in `oarlock-workers`: deleting the Secret revokes
 * it. `credential-revoker.ts` does so when its Worker has been deleted. A name has one credential at a time.
 */
export class JoinService {
  readonly #options: JoinServiceOptions
  readonly #nowMs: () => number
  readonly #ttlMs: number
  readonly #maxCredentials: { all: number; perToken: number }
  readonly #lookups = new ClientLimiter(lookupLimits)
  readonly #joins = new ClientLimiter(joinLimits)
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #sweeping: Promise<void> = Promise.resolve()
  /** Credentials by token, with an empty id for workers of this host: those that existed at the last sweep, and those issued since. */
  #credentials = new Map<string, number>()

  constructor(options: JoinServiceOptions) {
    this.#options = options
    this.#nowMs = options.nowMs ?? Date.now
    this.#ttlMs = options.ttlMs ?? credentialTtlMs
    this.#maxCredentials = options.maxCredentials ?? maxCredentials
  }

  /**
   * A worker with a valid `token` joins the pool of the token. Its name is `requestedName` with a random suffix of six characters, so
   * that it cannot take the name, and with it the permissions, of an existing worker. A token for one name assigns that name. Its labels
   * are those of the token, and those of `requestedLabels` that the token allows.
   */
  async join(
    token: unknown,
    requestedName: unknown,
    requestedLabels?: unknown,
    remoteAddress?: string,
  ): Promise<JoinResponse | JoinRejection> {
    const parsed = typeof token === 'string' ? parseJoinToken(token) : undefined
    return await orTooMany(async () => {
      const record = parsed && (await this.#lookups.run(networkOf(remoteAddress), () => this.#find(parsed)))
      if (!record) return unauthorized('join token is invalid, expired, exhausted or revoked: create one with "oarlock token create"')
      return await this.#joins.run(`token ${record.id}`, () => this.#joinWith(record, requestedName, requestedLabels))
    })
  }

  async #joinWith(record: JoinTokenRecord, requestedName: unknown, requestedLabels: unknown): Promise<JoinResponse | JoinRejection> {
    const base = requestedName === undefined || requestedName === '' ? record.pool : requestedName
    if (typeof base !== 'string' || base.length > 200 || nameErrors(base, 'dns1123Subdomain').length > 0) {
      return { code: 422, message: 'name must be a lowercase RFC 1123 subdomain of at most 200 characters' }
    }
    const worker = record.worker ?? `${base}-${randomSuffix(6)}`
    const nameError = reservedNameError(worker, record.pool)
    if (nameError !== undefined) return { code: 422, message: nameError }
    const outcome = allowedLabels(record, requestedLabels)
    if ('rejected' in outcome) return { code: 403, message: outcome.rejected }
    if (!(await this.#options.client.resource(workerPoolResource).getOrUndefined(record.pool))) {
      return { code: 404, message: `WorkerPool ${record.pool} of the join token does not exist` }
    }
    const destinations = await this.#destinations()
    if ('code' in destinations) return destinations
    await this.#sweep(sweepEveryMs)
    if (this.#fullMessage(record.id) !== undefined) await this.#sweep(recountEveryMs)
    const full = this.#fullMessage(record.id)
    if (full !== undefined) return { code: 429, message: full }
    if (!(await this.#consume(record))) return unauthorized('join token is exhausted: create one with "oarlock token create"')
    const made = await this.#createCredential({ worker, pool: record.pool, tokenId: record.id }, outcome.labels)
    return 'code' in made ? made : { ...made, ...destinations }
  }

  /** Issues the credential of a worker process that this host is about to start. */
  async issue(worker: string, pool: string, labels: Readonly<Record<string, string>>): Promise<JoinResponse | JoinRejection> {
    const nameError = reservedNameError(worker, pool)
    if (nameError !== undefined) return { code: 422, message: nameError }
    await this.#sweep(sweepEveryMs)
    return await this.#createCredential({ worker, pool, tokenId: undefined }, labels)
  }

  /** Issues a new credential to a worker that has joined; `user` is the user of the current credential. */
  async renew(user: { name: string; groups: readonly string[] } | undefined): Promise<JoinResponse | JoinRejection> {
    const worker = podOf(user) ? undefined : workerOf(user)
    if (worker === undefined) return { code: 401, message: 'only a worker that joined can renew its credential, while it is valid' }
    return await orTooMany(() => this.#joins.run(`worker ${worker}`, () => this.#renewOf(worker)))
  }

  async #renewOf(worker: string): Promise<JoinResponse | JoinRejection> {
    const secrets = this.#options.client.resource(secretResource)
    const found = await secrets.getOrUndefined(workerCredentialName(worker), { namespace: workersNamespace })
    const pool = found?.metadata.labels?.[labels.pool]
    if (found?.type !== workerCredentialType || !pool) return credentialRevoked
    const ownLabels = credentialLabels(found)
    if (!ownLabels)
      return {
        code: 403,
        message: `the annotation ${workerLabelsAnnotation} of Secret ${found.metadata.name} is malformed: delete it and join again`,
      }
    const hasWorker = (await this.#options.client.resource(workerResource).getOrUndefined(worker)) !== undefined
    if (!hasWorker && !mayRegister(found, this.#nowMs())) return { code: 403, message: `Worker ${worker} was deleted: join again` }
    const destinations = await this.#destinations()
    if ('code' in destinations) return destinations
    const patch = { metadata: { annotations: { [expiresAtAnnotation]: rfc3339(this.#nowMs() + this.#ttlMs) } } }
    try {
      await secrets.patch(found.metadata.name, patch, { type: 'merge', namespace: workersNamespace })
    } catch (error) {
      if (isReason(error, 'NotFound')) return credentialRevoked
      throw error
    }
    return { ...(await this.#sign(worker, pool, found, ownLabels)), ...destinations }
  }

  /** Asked before anything is written: a worker that is rejected must not use up its token. */
  async #destinations(): Promise<Destinations | JoinRejection> {
    return (await this.#options.destinations?.()) ?? {}
  }

  async #find(token: JoinToken): Promise<JoinTokenRecord | undefined> {
    const secret = await this.#options.client
      .resource(secretResource)
      .getOrUndefined(joinTokenName(token.id), { namespace: systemNamespace })
    const record = secret && joinTokenFromSecret(secret)
    if (!record || !verifySecret(token.secret, record.hash)) return undefined
    return record.expiresAtMs > this.#nowMs() && record.uses !== 0 ? record : undefined
  }

  /** Consumes one use at the resourceVersion that was read, so that two concurrent requests cannot both get the last one. */
  async #consume({ id, uses, worker }: JoinTokenRecord): Promise<boolean> {
    if (uses === undefined) return true
    const secrets = this.#options.client.resource(secretResource)
    for (let attempt = 0; attempt < 10; attempt++) {
      const secret = await secrets.getOrUndefined(joinTokenName(id), { namespace: systemNamespace })
      const remaining = (secret && joinTokenFromSecret(secret)?.uses) ?? 0
      if (!secret || remaining <= 0) return false
      try {
        const { name, resourceVersion } = secret.metadata
        const namespace = systemNamespace
        // Pools create a token for each worker; used ones would pile up until they expire.
        if (worker !== undefined && remaining === 1) await secrets.delete(name, { namespace, preconditions: { resourceVersion } })
        else {
          const stringData = { uses: String(remaining - 1) }
          await secrets.patch(name, { stringData }, { type: 'merge', namespace, resourceVersion })
        }
        return true
      } catch (error) {
        if (!isReason(error, 'Conflict', 'NotFound')) throw error
      }
    }
    return false
  }

  async #createCredential(
    { worker, pool, tokenId }: { worker: string; pool: string; tokenId: string | undefined },
    labels: Readonly<Record<string, string>>,
  ): Promise<JoinResponse | JoinRejection> {
    const secrets = this.#options.client.resource(secretResource)
    const requested = await this.#options.client.resource(workerResource).getOrUndefined(worker)
    const workerUid = requested && isStartRequested(requested) ? requested.metadata.uid : undefined
    const record = workerCredentialSecret({ worker, pool, tokenId, workerUid, expiresAtMs: this.#nowMs() + this.#ttlMs, labels })
    try {
      this.#credentials.set(tokenId ?? '', (this.#credentials.get(tokenId ?? '') ?? 0) + 1)
      const made = await secrets.create({ ...record, metadata: { ...record.metadata, namespace: workersNamespace } })
      return await this.#sign(worker, pool, made, labels)
    } catch (error) {
      if (isReason(error, 'AlreadyExists')) return { code: 409, message: `worker ${worker} already has a credential` }
      throw error
    }
  }

  async #sign(
    worker: string,
    pool: string,
    record: KubeObject<SecretBody>,
    labels: Readonly<Record<string, string>>,
  ): Promise<JoinResponse> {
    const hasJoined = record.metadata.labels?.[joinTokenLabel] !== undefined
    const { credential, expiresAtMs } = await this.#options.issueCredential({ worker, pool, hasJoined, ttlMs: this.#ttlMs, record })
    return {
      worker,
      pool,
      labels,
      credential,
      expiresAt: rfc3339(expiresAtMs),
      ttlMs: expiresAtMs - this.#nowMs(),
    }
  }

  /** Deletes expired tokens and credentials, and counts the others, if the last time was `intervalMs` ago. */
  async #sweep(intervalMs: number): Promise<void> {
    if (this.#nowMs() - this.#sweptAtMs >= intervalMs) {
      this.#sweptAtMs = this.#nowMs()
      this.#sweeping = this.#sweepNow(this.#sweptAtMs).catch((error: unknown) => {
        this.#sweptAtMs = Number.NEGATIVE_INFINITY
        throw error
      })
    }
    await this.#sweeping
  }

  async #sweepNow(nowMs: number): Promise<void> {
    const { client } = this.#options
    const secrets = client.resource(secretResource)
    const items = await listJoinSecrets(client)
    const isExpired = (secret: KubeObject<SecretBody>): boolean =>
      secret.type === workerCredentialType
        ? credentialExpiresAtMs(secret) < nowMs
        : (joinTokenFromSecret(secret)?.expiresAtMs ?? nowMs) < nowMs
    const expired = items.filter(isExpired)
    for (const { metadata } of expired) {
      await secrets
        .delete(metadata.name, { namespace: metadata.namespace, preconditions: { uid: metadata.uid } })
        .catch((error: unknown) => {
          if (!isReason(error, 'NotFound', 'Conflict')) throw error
        })
    }
    const tokens = items.filter(secret => secret.type === workerCredentialType && !isExpired(secret) && !hasEnded(secret)).map(tokenIdOf)
    this.#credentials = new Map()
    for (const id of tokens) this.#credentials.set(id, (this.#credentials.get(id) ?? 0) + 1)
  }

  /** Why no further worker can join with this token; undefined if it can. */
  #fullMessage(id: string): string | undefined {
    const { all, perToken } = this.#maxCredentials
    if ((this.#credentials.get(id) ?? 0) >= perToken) return `the limit of ${perToken} joined workers of one token is reached`
    const count = this.#credentials.values().reduce((sum, each) => sum + each, 0)
    return count >= all ? `the limit of ${all} joined workers is reached` : undefined
  }
}

/** Awaits a join or a renewal that a limit may reject. */
async function orTooMany(outcome: () => Promise<JoinResponse | JoinRejection>): Promise<JoinResponse | JoinRejection> {
  try {
    return await outcome()
  } catch (error) {
    if (!(error instanceof LimitExceededError)) throw error
    return { code: 429, message: 'too many requests to join are waiting: try again in a second' }
  }
}

const hasEnded = ({ metadata }: KubeObject<SecretBody>): boolean => metadata.annotations?.[endedAtAnnotation] !== undefined

const tokenIdOf = ({ metadata }: KubeObject<SecretBody>): string => metadata.labels?.[joinTokenLabel] ?? ''

const unauthorized = (message: string): JoinRejection => ({ code: 401, message })

const randomSuffix = (count: number): string =>
  Array.from({ length: count }, () => 'abcdefghijklmnopqrstuvwxyz0123456789'[randomInt(36)]).join('')
