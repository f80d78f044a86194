import { type Client, type SecretBody, secretResource } from '../../kubernetes/client/index.ts'
import { createOrPatch } from '../../kubernetes/controller/index.ts'
import { controllerReference } from '../../kubernetes/object/index.ts'
import type { ConnectionDetails, ManagedObject } from './managed-object.ts'

/** Crossplane's type of Secrets with connection details. */
const secretType = 'connection.crossplane.io/v1alpha1'

/**
 * Writes connection details into the Secret that the resource names, in its namespace. Keys that are there already are kept. The garbage collector
 * deletes it with the resource.
 * @throws {Error} if the Secret exists and the resource does not control it: it is someone else's.
 */
export async function publishToSecret(client: Client, object: ManagedObject, details: ConnectionDetails): Promise<void> {
  const name = object.spec?.writeConnectionSecretToRef?.name
  const { namespace, uid } = object.metadata
  if (!name || !namespace) return
  const data = Object.fromEntries(Object.entries(details).map(([key, value]) => [key, Buffer.from(value as string).toString('base64')]))
  await createOrPatch<SecretBody>(client.resource(secretResource), { name, namespace }, current => {
    if (!current) return { type: secretType, metadata: { ownerReferences: [controllerReference(object)] }, data }
    if (!current.metadata.ownerReferences?.some(owner => owner.controller && owner.uid === uid)) {
      throw new Error(
        `Secret ${namespace}/${name} exists and is not controlled by this ${object.kind}: delete it, or name another one in spec.writeConnectionSecretToRef`,
      )
    }
    return { ...current, data: { ...current.data, ...data } }
  })
}
