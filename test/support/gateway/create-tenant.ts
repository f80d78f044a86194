import { tenantResource } from '../../../src/api/index.ts'
import { type Client, namespaceResource } from '../../../src/kubernetes/client/index.ts'
import { eventually } from '../eventually.ts'

/** The gateway follows home by a watch, and does not know of a new Tenant for a moment. */
export const isTenantUnknown = (error: unknown) => /which does not exist or has no partition/.test(String(error))

/** Creates a Tenant in a partition, and one namespace of it: by default with its name. */
export async function createTenant(client: Client, name: string, partition: string, namespace = name): Promise<void> {
  await client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec: {} })
  const create = () =>
    client
      .resource(namespaceResource)
      .create({ metadata: { name: namespace, labels: { 'oarlock.dev/tenant': name } } })
      .catch(error => (isTenantUnknown(error) ? undefined : Promise.reject(error)))
  await eventually(create, `namespace ${namespace}`)
}
