import { systemNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import {
  type JoinTokenRecord,
  joinTokenLabel,
  joinTokenName,
  joinTokenSecret,
  readJoinToken,
  workerCredentialName,
  workerCredentialType,
} from './join-secrets.ts'
import { formatJoinToken, hashSecret, makeJoinToken } from './join-token.ts'
import { labelPolicyError } from './worker-labels.ts'

export type NewJoinToken = {
  pool: string
  ttlMs: number
  /** How often it may be used. Default: as often as wanted. */
  uses?: number
  /** The one name it may be used for. Default: any that the server chooses. */
  worker?: string
  /** Labels that every worker of it has. Default: none. */
  labels?: Readonly<Record<string, string>>
  /** Labels that a worker may choose: `key`, `key=value`, or `*` for any. Default: none. */
  allowLabels?: readonly string[]
  nowMs?: number
}

/** Makes a join token. The text that is returned is nowhere else: only its hash is kept. @throws {RangeError} for labels that are none. */
export async function createJoinToken(
  client: Client,
  caCertificate: string,
  { pool, ttlMs, uses, worker, labels = {}, allowLabels = [], nowMs = Date.now() }: NewJoinToken,
): Promise<{ text: string; id: string; expiresAtMs: number }> {
  const token = makeJoinToken(caCertificate)
  const expiresAtMs = nowMs + ttlMs
  const terms = { labels, allowLabels }
  const wrong = labelPolicyError(terms)
  if (wrong) throw new RangeError(wrong)
  const secret = joinTokenSecret({ id: token.id, hash: hashSecret(token.secret), pool, expiresAtMs, uses, worker, ...terms })
  await client.resource(secretResource).create({ ...secret, metadata: { ...secret.metadata, namespace: systemNamespace } })
  return { text: formatJoinToken(token), id: token.id, expiresAtMs }
}

export type ListedJoinToken = JoinTokenRecord & { readonly workers: readonly string[] }

/** Every join token, with the workers that joined with it and whose credentials hold. Tokens that are gone are named by their workers. */
export async function listJoinTokens(client: Client): Promise<ListedJoinToken[]> {
  const secrets = await listJoinSecrets(client)
  const workersOf = Map.groupBy(
    secrets.filter(({ type }) => type === workerCredentialType),
    ({ metadata }) => metadata.labels?.[joinTokenLabel] ?? '',
  )
  return secrets
    .map(readJoinToken)
    .filter(record => record !== undefined)
    .map(record => ({ ...record, workers: (workersOf.get(record.id) ?? []).map(workerNameOf) }))
}

/**
 * Revokes a join token: nobody joins with it any more, and unless `keepWorkers` those who did lose their credentials at once.
 * Returns undefined when there is no such token, nor anybody who joined with it.
 */
export async function revokeJoinToken(
  client: Client,
  id: string,
  { keepWorkers = false } = {},
): Promise<{ workers: string[] } | undefined> {
  const secrets = (await listJoinSecrets(client)).filter(({ metadata }) => metadata.labels?.[joinTokenLabel] === id)
  if (secrets.length === 0) return undefined
  // The token first: nobody comes in while the others are shown out.
  await remove(client, joinTokenName(id))
  const credentials = keepWorkers ? [] : secrets.filter(({ type }) => type === workerCredentialType)
  // Who was being let in while the token went has a credential by now.
  const late = keepWorkers ? [] : (await listJoinSecrets(client)).filter(isCredentialOf(id))
  const all = new Map([...credentials, ...late].map(secret => [secret.metadata.name, secret]))
  for (const name of all.keys()) await remove(client, name)
  return { workers: [...all.values()].map(workerNameOf) }
}

/** Revokes the credential of one worker. Returns false when it has none. */
export async function revokeWorker(client: Client, worker: string): Promise<boolean> {
  return await remove(client, workerCredentialName(worker))
}

const isCredentialOf =
  (id: string) =>
  ({ type, metadata }: KubeObject<SecretBody>): boolean =>
    type === workerCredentialType && metadata.labels?.[joinTokenLabel] === id

async function listJoinSecrets(client: Client): Promise<KubeObject<SecretBody>[]> {
  return (await client.resource(secretResource).listAll({ namespace: systemNamespace, labelSelector: joinTokenLabel })).items
}

async function remove(client: Client, name: string): Promise<boolean> {
  try {
    await client.resource(secretResource).delete(name, { namespace: systemNamespace })
    return true
  } catch (error) {
    if (isReason(error, 'NotFound')) return false
    throw error
  }
}

const workerNameOf = ({ metadata }: KubeObject<SecretBody>): string => metadata.name.slice(workerCredentialName('').length)
