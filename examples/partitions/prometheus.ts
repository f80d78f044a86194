import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from '../../src/kubernetes/client/index.ts'
import { describeResource } from '../../src/kubernetes/object/index.ts'
import type { Installation } from './installation.ts'

const roleBinding = describeResource<{ roleRef: object; subjects: readonly object[] }>({
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRoleBinding', plural: 'clusterrolebindings', scope: 'Cluster' },
})
const role = describeResource<{ rules: readonly object[] }>({
  ...{ group: 'rbac.authorization.k8s.io', version: 'v1', kind: 'ClusterRole', plural: 'clusterroles', scope: 'Cluster' },
})
const account = describeResource<object>({
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  scope: 'Namespaced',
})

const tokenSeconds = 365 * 24 * 3_600
const namespace = 'oarlock-system'

/**
 * Writes `<directory>/prometheus.yaml`, which scrapes every process with a ServiceAccount that may read metrics and nothing else: a role and a binding at home,
 * which all partitions copy. @returns its path.
 */
export async function writePrometheusConfiguration(
  installation: Installation,
  client: Client,
  {
    tenantPartitions,
    resourcePartitions,
  }: { readonly tenantPartitions: readonly string[]; readonly resourcePartitions: readonly string[] },
): Promise<string> {
  const { directory } = installation
  const metadata = { name: 'metrics-reader' }
  await client.resource(account).apply({ metadata: { ...metadata, namespace } }, { force: true })
  await client.resource(role).apply({ metadata, rules: [{ nonResourceURLs: ['/metrics'], verbs: ['get'] }] }, { force: true })
  await client.resource(roleBinding).apply(
    {
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: metadata.name },
      subjects: [{ kind: 'ServiceAccount', name: metadata.name, namespace }],
    },
    { force: true },
  )
  const response = await client.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${metadata.name}/token`,
    body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: tokenSeconds } },
  })
  const { status } = (await response.json()) as { status: { token: string } }
  const tokenFile = join(directory, 'prometheus.token')
  writeFileSync(tokenFile, status.token, { mode: 0o600 })
  const host = (url: string) => new URL(url).host
  const job = (name: string, address: string, labels: Record<string, string>, caFile: string) => `  - job_name: ${name}
    scheme: https
    tls_config: { ca_file: ${JSON.stringify(caFile)} }
    authorization: { credentials_file: ${JSON.stringify(tokenFile)} }
    static_configs:
      - targets: [${JSON.stringify(host(address))}]
        labels: ${JSON.stringify(labels)}
`
  const ca = join(directory, 'home', 'pki', 'ca.crt')
  const jobs = [job('gateway', installation.role('gateway').printed('API'), { role: 'gateway' }, ca)]
  for (const name of ['home', ...tenantPartitions, ...resourcePartitions])
    jobs.push(job(name, installation.role(name).printed('API'), { role: 'api-server', partition: name }, ca))
  for (const name of tenantPartitions) {
    const storesCa = join(directory, `stores-${name}`, 'pki', 'ca.crt')
    jobs.push(job(`stores-${name}`, installation.role(`stores-${name}`).printed('stores'), { role: 'stores', partition: name }, storesCa))
    jobs.push(controllerJob(installation, name))
  }
  jobs.push(controllerJob(installation, 'home'))
  const path = join(directory, 'prometheus.yaml')
  writeFileSync(path, `global: { scrape_interval: 15s }\nscrape_configs:\n${jobs.join('')}`)
  return path
}

/** Its metrics are on its health address, in plain HTTP, with a token of their own. */
function controllerJob(installation: Installation, partition: string): string {
  const name = `controller-${partition}`
  const tokenFile = join(installation.directory, name, 'status-token')
  return `  - job_name: ${name}
    authorization: { credentials_file: ${JSON.stringify(tokenFile)} }
    static_configs:
      - targets: [${JSON.stringify(new URL(installation.role(name).printed('health')).host)}]
        labels: ${JSON.stringify({ role: 'controller', partition })}
`
}
