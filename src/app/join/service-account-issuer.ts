import { labels, workersNamespace } from '../../api/index.ts'
import { type Client, type SecretBody, serviceAccountResource } from '../../kubernetes/client/index.ts'
import type { KubeObject } from '../../kubernetes/object/index.ts'
import { applyObjects, deleteObjects, rightsOfWorker } from '../manifests/index.ts'
import { mayRegister } from './join-secrets.ts'
import type { IssueCredential } from './join-service.ts'
import { credentialLabels } from './worker-labels.ts'

type TokenRequest = { status: { token: string; expirationTimestamp: string } }

/**
 * Issues the credentials of workers on any Kubernetes API server: the token of a ServiceAccount with the worker's name, by TokenRequest. The
 * token is bound to the Secret that records the credential, and that Secret owns the ServiceAccount: deleting it revokes the token.
 * With its account, and not with a renewal, the worker also gets the rights to its labels and to its registration, which an admission policy checks
 * where there is no authorizer of Oarlock.
 * The server may shorten the lifetime; TokenRequest allows no less than ten minutes.
 */
export function serviceAccountIssuer(client: Client, nowMs = Date.now): IssueCredential {
  const accounts = client.resource(serviceAccountResource)
  return async ({ worker, pool, ttlMs, record }) => {
    const account = {
      metadata: { name: worker, namespace: workersNamespace, labels: { [labels.pool]: pool }, ownerReferences: [ownerOf(record)] },
    }
    const { name, uid } = record.metadata
    const existing = await accounts.getOrUndefined(worker, { namespace: workersNamespace })
    const isOwn = existing?.metadata.ownerReferences?.some(owner => owner.uid === uid)
    // That of an earlier worker of this name, whose record was deleted: the garbage collector would delete it, and with it the new token.
    if (existing && !isOwn) await accounts.delete(worker, { namespace: workersNamespace, preconditions: { uid: existing.metadata.uid } })
    if (!isOwn) {
      await accounts.create({ ...account, automountServiceAccountToken: false })
      await applyObjects(client, rightsOf(worker, pool, record, mayRegister(record, nowMs())))
    }
    const spec = {
      expirationSeconds: Math.ceil(ttlMs / 1_000),
      boundObjectRef: { apiVersion: 'v1', kind: 'Secret', name, uid },
    }
    const response = await client.request({
      method: 'POST',
      path: `/api/v1/namespaces/${workersNamespace}/serviceaccounts/${encodeURIComponent(worker)}/token`,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec },
    })
    const { status } = (await response.json()) as TokenRequest
    return { credential: status.token, expiresAtMs: Date.parse(status.expirationTimestamp) }
  }
}

/** Withdraws the right to register from a worker that has: if it deletes its Worker, the policies admit no other one. */
export async function withdrawRegistration(client: Client, worker: string, record: KubeObject<SecretBody>): Promise<void> {
  await applyObjects(client, rightsOf(worker, record.metadata.labels?.[labels.pool] ?? '', record, false))
}

/** Withdraws all rights from a worker. */
export async function withdrawRights(client: Client, worker: string): Promise<void> {
  const owner = { apiVersion: 'v1', kind: 'Secret', name: '', uid: '' }
  await deleteObjects(client, rightsOfWorker({ name: worker, owner, labels: {}, mayRegister: false }))
}

const rightsOf = (name: string, pool: string, record: KubeObject<SecretBody>, isNew: boolean) =>
  rightsOfWorker({ name, owner: ownerOf(record), labels: { ...credentialLabels(record), [labels.pool]: pool }, mayRegister: isNew })

const ownerOf = ({ metadata: { name, uid } }: KubeObject<SecretBody>) => ({ apiVersion: 'v1', kind: 'Secret', name, uid })
