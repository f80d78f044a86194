import { tenantResource } from '../../../src/api/index.ts'
import { type Client, namespaceResource } from '../../../src/kubernetes/client/index.ts'
import { eventually } from '../eventually.ts'

/** Creates a Tenant in a partition, and one namespace of it: by default with its name. The gateway follows home by a watch, a moment later. */
export async function createTenant(client: Client, name: string, partition: string, namespace = name): Promise<void> {
  await client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec: {} })
  const create = () =>
    client
      .resource(namespaceResource)
      .create({ metadata: { name: namespace, labels: { 'oarlock.dev/tenant': name } } })
      .catch(error => (/which does not exist or has no partition/.test(String(error)) ? undefined : Promise.reject(error)))
  await eventually(create, `namespace ${namespace}`)
}
