import { systemNamespace, workersNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import { reservedNameError } from '../worker-identity.ts'
import {
  type JoinTokenRecord,
  joinTokenFromSecret,
  joinTokenLabel,
  joinTokenName,
  joinTokenSecret,
  listJoinSecrets,
  workerCredentialName,
  workerCredentialType,
} from './join-secrets.ts'
import { formatJoinToken, hashSecret, makeJoinToken } from './join-token.ts'
import { labelPolicyError } from './worker-labels.ts'

export type NewJoinToken = {
  pool: string
  ttlMs: number
  /** Maximum number of uses. Default: unlimited. */
  uses?: number
  /** The only name that a worker can join under. Default: the server chooses the name. */
  worker?: string
  /** Labels of every worker that joins. Default: none. */
  labels?: Readonly<Record<string, string>>
  /** Labels that a worker can choose: `key`, `key=value`, or `*` for any. Default: none. */
  allowLabels?: readonly string[]
  nowMs?: number
}

/** Creates a join token. The returned text cannot be read again: only its hash is stored. @throws {RangeError} for invalid labels, or a reserved worker name. */
export async function createJoinToken(
  client: Client,
  caCertificate: string,
  { pool, ttlMs, uses, worker, labels = {}, allowLabels = [], nowMs = Date.now() }: NewJoinToken,
): Promise<{ text: string; id: string; expiresAtMs: number }> {
  const token = makeJoinToken(caCertificate)
  const expiresAtMs = nowMs + ttlMs
  const policy = { labels, allowLabels }
  const error = labelPolicyError(policy) ?? (worker === undefined ? undefined : reservedNameError(worker, pool))
  if (error) throw new RangeError(error)
  const secret = joinTokenSecret({ id: token.id, hash: hashSecret(token.secret), pool, expiresAtMs, uses, worker, ...policy })
  await client.resource(secretResource).create({ ...secret, metadata: { ...secret.metadata, namespace: systemNamespace } })
  return { text: formatJoinToken(token), id: token.id, expiresAtMs }
}

export type ListedJoinToken = JoinTokenRecord & { readonly workers: readonly string[] }

/** Every join token, with the workers that joined with it and have a valid credential. */
export async function listJoinTokens(client: Client): Promise<ListedJoinToken[]> {
  const secrets = await listJoinSecrets(client)
  const workersOf = Map.groupBy(
    secrets.filter(({ type }) => type === workerCredentialType),
    ({ metadata }) => metadata.labels?.[joinTokenLabel] ?? '',
  )
  return secrets
    .map(joinTokenFromSecret)
    .filter(record => record !== undefined)
    .map(record => ({ ...record, workers: (workersOf.get(record.id) ?? []).map(workerNameOf) }))
}

/**
 * Revokes a join token and, unless `keepWorkers`, immediately the credentials of the workers that joined with it. Returns undefined if
 * neither the token nor such a worker exists.
 */
export async function revokeJoinToken(
  client: Client,
  id: string,
  { keepWorkers = false } = {},
): Promise<{ workers: string[] } | undefined> {
  const secrets = (await listJoinSecrets(client)).filter(({ metadata }) => metadata.labels?.[joinTokenLabel] === id)
  if (secrets.length === 0) return undefined
  // The token first, so that no worker joins meanwhile.
  await remove(client, joinTokenName(id), systemNamespace)
  const credentials = keepWorkers ? [] : secrets.filter(({ type }) => type === workerCredentialType)
  // A worker that was joining while the token was deleted has a credential by now.
  const joinedMeanwhile = keepWorkers ? [] : (await listJoinSecrets(client)).filter(isCredentialOf(id))
  const all = new Map([...credentials, ...joinedMeanwhile].map(secret => [secret.metadata.name, secret]))
  for (const name of all.keys()) await remove(client, name, workersNamespace)
  return { workers: [...all.values()].map(workerNameOf) }
}

/** Revokes the credential of a worker. Returns false if it has none. */
export async function revokeWorker(client: Client, worker: string): Promise<boolean> {
  return await remove(client, workerCredentialName(worker), workersNamespace)
}

const isCredentialOf =
  (id: string) =>
  ({ type, metadata }: KubeObject<SecretBody>): boolean =>
    type === workerCredentialType && metadata.labels?.[joinTokenLabel] === id

async function remove(client: Client, name: string, namespace: string): Promise<boolean> {
  try {
    await client.resource(secretResource).delete(name, { namespace })
    return true
  } catch (error) {
    if (isReason(error, 'NotFound')) return false
    throw error
  }
}

const workerNameOf = ({ metadata }: KubeObject<SecretBody>): string => metadata.name.slice(workerCredentialName('').length)
