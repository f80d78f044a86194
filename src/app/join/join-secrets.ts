import { labels } from '../../api/index.ts'
import type { SecretBody } from '../../kubernetes/client/index.ts'
import { type KubeObject, rfc3339 } from '../../kubernetes/object/index.ts'
import { type LabelPolicy, workerLabelsAnnotation } from './worker-labels.ts'

/** Both kinds are Secrets in `oarlock-system`, where only administrators look; neither holds anything that opens a door. */
const joinTokenType = 'oarlock.dev/join-token'
export const workerCredentialType = 'oarlock.dev/worker-credential'

/** On both: which token a worker joined with, and which pool it is for. */
export const joinTokenLabel = 'oarlock.dev/join-token'

export const joinTokenName = (id: string): string => `join-token-${id}`
export const workerCredentialName = (worker: string): string => `worker-credential-${worker}`

/** What is kept of a join token. */
export type JoinTokenRecord = LabelPolicy & {
  readonly id: string
  readonly hash: string
  readonly pool: string
  readonly expiresAtMs: number
  /** How often it may still be used; undefined: as often as wanted. */
  readonly uses: number | undefined
  /** The one name it may be used for; undefined: any that the server chooses. */
  readonly worker: string | undefined
}

export function joinTokenSecret({ id, hash, pool, expiresAtMs, uses, worker, labels: given, allowLabels }: JoinTokenRecord) {
  const stringData = {
    hash,
    pool,
    expiresAt: rfc3339(expiresAtMs),
    ...(uses !== undefined && { uses: String(uses) }),
    ...(worker !== undefined && { worker }),
    terms: JSON.stringify({ labels: given, allowLabels } satisfies LabelPolicy),
  }
  return { metadata: { name: joinTokenName(id), labels: { [joinTokenLabel]: id, [labels.pool]: pool } }, type: joinTokenType, stringData }
}

/** Undefined for a Secret that is no join token. */
export function readJoinToken({ metadata, type, data = {} }: KubeObject<SecretBody>): JoinTokenRecord | undefined {
  const text = (key: string) => (data[key] === undefined ? undefined : Buffer.from(data[key], 'base64').toString('utf8'))
  const [hash, pool, expiresAt, uses] = ['hash', 'pool', 'expiresAt', 'uses'].map(text)
  const id = metadata.labels?.[joinTokenLabel]
  if (type !== joinTokenType || !id || !hash || !pool || !expiresAt) return undefined
  const left = uses === undefined ? undefined : Number(uses)
  // A token of before there were terms allows no labels.
  const terms: LabelPolicy = { labels: {}, allowLabels: [], ...(JSON.parse(text('terms') ?? '{}') as Partial<LabelPolicy>) }
  return { id, hash, pool, expiresAtMs: Date.parse(expiresAt), uses: left, worker: text('worker'), ...terms }
}

export const expiresAtAnnotation = 'oarlock.dev/expires-at'

/** The Secret that a worker's credential lives and dies with: deleting it ends the credential, at once. */
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
