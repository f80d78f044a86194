import { labels } from '../../api/index.ts'
import type { SecretBody } from '../../kubernetes/client/index.ts'
import { type KubeObject, rfc3339 } from '../../kubernetes/object/index.ts'
import { type LabelPolicy, workerLabelsAnnotation } from './worker-labels.ts'

/** Both are Secrets in `oarlock-system`, which only administrators can read. Neither contains a usable credential. */
const joinTokenType = 'oarlock.dev/join-token'
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

/** Undefined for a Secret that is not a join token. */
export function joinTokenFromSecret({ metadata, type, data = {} }: KubeObject<SecretBody>): JoinTokenRecord | undefined {
  const text = (key: string) => (data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8'))
  const [hash, pool, expiresAt, uses] = ['hash', 'pool', 'expiresAt', 'uses'].map(text)
  const id = metadata.labels?.[joinTokenLabel]
  if (type !== joinTokenType || !id || !hash || !pool || !expiresAt) return undefined
  const remainingUses = uses === undefined ? undefined : Number(uses)
  const policy: LabelPolicy = { labels: {}, allowLabels: [], ...(JSON.parse(text('labelPolicy') ?? '{}') as Partial<LabelPolicy>) }
  return { id, hash, pool, expiresAtMs: Date.parse(expiresAt), uses: remainingUses, worker: text('worker'), ...policy }
}

export const expiresAtAnnotation = 'oarlock.dev/expires-at'

/** The Secret that a worker's credential is bound to: deleting it revokes the credential immediately. */
export function workerCredentialSecret(record: {
  worker: string
  pool: string
  tokenId: string
  expiresAtMs: number
  labels: Readonly<Record<string, string>>
}) {
  const { worker, pool, tokenId, expiresAtMs } = record
  return {
    metadata: {
      name: workerCredentialName(worker),
      labels: { [joinTokenLabel]: tokenId, [labels.pool]: pool },
      annotations: { [expiresAtAnnotation]: rfc3339(expiresAtMs), ...workerLabelsAnnotation(record.labels) },
    },
    type: workerCredentialType,
    stringData: { worker },
  }
}

export function credentialExpiresAtMs({ metadata }: KubeObject<SecretBody>): number {
  return Date.parse(metadata.annotations?.[expiresAtAnnotation] ?? '')
}
