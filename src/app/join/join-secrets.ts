import { labels, systemNamespace, workersNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isJsonObject, type KubeObject, labelErrors, nameErrors, rfc3339 } from '../../kubernetes/object/index.ts'
import { type LabelPolicy, labelPolicyError, workerLabelsAnnotation } from './worker-labels.ts'

/**
 * Both are Secrets, which only administrators can read: a join token in `oarlock-system`, the record of a credential in `oarlock-workers`.
 * Neither contains a usable credential.
 */
export const joinTokenType = 'oarlock.dev/join-token'
export const workerCredentialType = 'oarlock.dev/worker-credential'

/** On both: the id of the join token. */
export const joinTokenLabel = 'oarlock.dev/join-token'

export const joinTokenName = (id: string): string => `join-token-${id}`
export const workerCredentialName = (worker: string): string => `worker-credential-${worker}`

/** The stored part of a join token. */
export type JoinTokenRecord = LabelPolicy & {
  readonly id: string
  readonly hash: string
  readonly pool: string
  readonly expiresAtMs: number
  /** Remaining uses; undefined: unlimited. */
  readonly uses: number | undefined
  /** The only name that a worker can join under; undefined: the server chooses the name. */
  readonly worker: string | undefined
}

export function joinTokenSecret({ id, hash, pool, expiresAtMs, uses, worker, labels: given, allowLabels }: JoinTokenRecord) {
  const stringData = {
    hash,
    pool,
    expiresAt: rfc3339(expiresAtMs),
    ...(uses !== undefined && { uses: String(uses) }),
    ...(worker !== undefined && { worker }),
    labelPolicy: JSON.stringify({ labels: given, allowLabels } satisfies LabelPolicy),
  }
  return { metadata: { name: joinTokenName(id), labels: { [joinTokenLabel]: id, [labels.pool]: pool } }, type: joinTokenType, stringData }
}

/**
 * Undefined for a Secret that is not a join token. A malformed record is none either: with a value that cannot be read, the token must not
 * get more rights than were granted, such as any label or unlimited uses.
 */
export function joinTokenFromSecret({ metadata, type, data = {} }: KubeObject<SecretBody>): JoinTokenRecord | undefined {
  const text = (key: string) => (data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8'))
  const id = metadata.labels?.[joinTokenLabel]
  const [hash, pool, worker] = [text('hash'), text('pool'), text('worker')]
  if (type !== joinTokenType || !id || metadata.name !== joinTokenName(id) || !hash || !pool) return undefined
  const expiresAtMs = Date.parse(text('expiresAt') ?? '')
  const uses = parseUses(text('uses'))
  const policy = parseLabelPolicy(text('labelPolicy'))
  const isValid =
    !Number.isNaN(expiresAtMs) &&
    !Number.isNaN(uses) &&
    labelErrors({ [labels.pool]: pool }, 'labels').length === 0 &&
    (worker === undefined || (worker !== '' && nameErrors(workerCredentialName(worker), 'dns1123Subdomain').length === 0))
  return isValid && policy ? { id, hash, pool, expiresAtMs, uses, worker, ...policy } : undefined
}

/** Undefined: unlimited; NaN: malformed. */
function parseUses(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const uses = /^\d+$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(uses) ? uses : Number.NaN
}

/** Undefined if it is malformed. A token without a policy, or with a part of one, has no labels and allows none. */
function parseLabelPolicy(text = '{}'): LabelPolicy | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (!isJsonObject(value)) return undefined
  const { labels = {}, allowLabels = [] } = value
  const isText = (each: unknown) => typeof each === 'string'
  if (!isJsonObject(labels) || !Object.values(labels).every(isText)) return undefined
  if (!Array.isArray(allowLabels) || !allowLabels.every(isText)) return undefined
  const policy = { labels: labels as Record<string, string>, allowLabels: allowLabels as string[] }
  return labelPolicyError(policy) === undefined ? policy : undefined
}

export const expiresAtAnnotation = 'oarlock.dev/expires-at'
/** On the Secret of a credential: when its Worker was deleted. */
export const endedAtAnnotation = 'oarlock.dev/ended-at'

/**
 * How long after its credential was issued a worker can register. It does so within seconds. Later its Worker is missing because it was
 * deleted, which {@link endedAtAnnotation} shows earlier, unless no process observed it.
 */
export const registerWithinMs = 2 * 60_000

/**
 * On the Secret of a credential: the uid of the Worker that it registered, or that requested its worker. It registers no other one: a worker
 * would lose a drain and labels that an operator has set.
 */
export const workerUidAnnotation = 'oarlock.dev/worker-uid'

/** On the copy of the record of a credential in another partition: when it was issued. */
export const issuedAtAnnotation = 'oarlock.dev/issued-at'

/** Whether a credential is as new as that of a worker that registers. @param secret its record. */
export function isNewCredential(secret: Pick<KubeObject, 'metadata'> | undefined, nowMs: number): boolean {
  if (!secret || secret.metadata.annotations?.[endedAtAnnotation] !== undefined) return false
  const { annotations, creationTimestamp } = secret.metadata
  return nowMs - Date.parse(annotations?.[issuedAtAnnotation] ?? creationTimestamp) < registerWithinMs
}

/** Whether the worker of this credential may create its Worker: once. @param secret the record of its credential. */
export function mayRegister(secret: Pick<KubeObject, 'metadata'> | undefined, nowMs: number): boolean {
  return isNewCredential(secret, nowMs) && secret?.metadata.annotations?.[workerUidAnnotation] === undefined
}

/** The Secret that a worker's credential is bound to: deleting it revokes the credential immediately. */
export function workerCredentialSecret(record: {
  worker: string
  pool: string
  /** Undefined: this host started the worker. */
  tokenId: string | undefined
  /** Of the Worker that requested this worker; undefined: the worker creates its own. */
  workerUid: string | undefined
  expiresAtMs: number
  labels: Readonly<Record<string, string>>
}) {
  const { worker, pool, tokenId, workerUid, expiresAtMs } = record
  return {
    metadata: {
      name: workerCredentialName(worker),
      labels: { ...(tokenId !== undefined && { [joinTokenLabel]: tokenId }), [labels.pool]: pool },
      annotations: {
        [expiresAtAnnotation]: rfc3339(expiresAtMs),
        [workerLabelsAnnotation]: JSON.stringify(record.labels),
        ...(workerUid !== undefined && { [workerUidAnnotation]: workerUid }),
      },
    },
    type: workerCredentialType,
    stringData: { worker },
  }
}

export function credentialExpiresAtMs({ metadata }: KubeObject<SecretBody>): number {
  return Date.parse(metadata.annotations?.[expiresAtAnnotation] ?? '')
}

/** Join tokens and credentials of workers, also of those that did not join with a token. */
export async function listJoinSecrets(client: Client): Promise<KubeObject<SecretBody>[]> {
  const secrets = client.resource(secretResource)
  const [tokens, credentials] = await Promise.all([
    secrets.listAll({ namespace: systemNamespace, labelSelector: joinTokenLabel }),
    secrets.listAll({ namespace: workersNamespace }),
  ])
  return [...tokens.items, ...credentials.items.filter(({ type }) => type === workerCredentialType)]
}
