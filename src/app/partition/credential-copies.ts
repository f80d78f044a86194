import { workersNamespace } from '../../api/index.ts'
import { copyAnnotations } from '../../controllers/replication/index.ts'
import { partitionResource } from '../../gateway/index.ts'
import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { type Controller, controller } from '../../kubernetes/controller/index.ts'
import { isReason, type KubeObject } from '../../kubernetes/object/index.ts'
import { issuedAtAnnotation, workerCredentialType } from '../join/index.ts'

/**
 * A controller, for a manager whose client is that of home, that keeps in a resource partition what home records of the credentials of workers: pool, labels, and
 * when it was issued. By that the partition decides whether a worker may register there, and what its Worker may contain. Copies contain no credential, and
 * with one no one authenticates: tokens are bound to the Secrets of home.
 * @param partition name of this partition: one without the role Resources has no Workers, and gets no copies.
 */
export function credentialCopies(local: Client, partition: string): Controller {
  const copies = local.resource(secretResource)
  return controller<SecretBody>({
    name: 'credential-copies',
    for: secretResource,
    informer: { namespace: workersNamespace },
    backoff: { baseDelayMs: 50, maxDelayMs: 10_000 },
    reconcile: async ({ name, object, signal }) => {
      const own = await local.resource(partitionResource).getOrUndefined(partition, { signal })
      const isKept = own?.spec.roles.includes('Resources') && object?.type === workerCredentialType && !object.metadata.deletionTimestamp
      const copy = await copies.getOrUndefined(name, { namespace: workersNamespace, signal })
      if (isKept && object) {
        if (homeVersionOf(copy) === object.metadata.resourceVersion) return
        await copies.apply(copyOf(object), { force: true, fieldManager: 'oarlock-replication', signal })
      } else if (copy && homeVersionOf(copy) !== undefined) {
        const { uid } = copy.metadata
        await copies.delete(name, { namespace: workersNamespace, preconditions: { uid }, signal }).catch(error => {
          if (!isReason(error, 'NotFound', 'Conflict')) throw error
        })
      }
    },
  })
}

const homeVersionOf = (copy: KubeObject<unknown> | undefined) => copy?.metadata.annotations?.[copyAnnotations.homeVersion]

function copyOf({ metadata, type }: KubeObject<SecretBody>) {
  const { name, namespace, labels, resourceVersion, creationTimestamp } = metadata
  const annotations = {
    ...metadata.annotations,
    [copyAnnotations.homeVersion]: resourceVersion,
    [issuedAtAnnotation]: creationTimestamp,
  }
  return { metadata: { name, namespace, labels, annotations }, type }
}
