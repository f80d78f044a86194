import { setTimeout as sleep } from 'node:timers/promises'
import { type StackSpec, stackResource, tenantResource } from '../../src/api/index.ts'
import { type Client, namespaceResource, secretResource } from '../../src/kubernetes/client/index.ts'
import { findCondition, isReason } from '../../src/kubernetes/object/index.ts'
import { poolOf } from './roles.ts'

const stacksPerTenant = 6

/** A chain of three Stacks, each of which uses outputs of the one before, and three that are independent. */
function sampleStacks(pool: string): Record<string, StackSpec> {
  const command = (apply: string, more: Partial<StackSpec> = {}): StackSpec => ({
    ...{ engine: 'command', pool, source: { inline: { files: { 'run.sh': apply } } }, command: { apply: ['sh', 'run.sh'] } },
    ...more,
  })
  const output = (name: string, value: string) => `sleep 0.3; echo '{"${name}": "${value}"}' > "$OARLOCK_OUTPUTS"`
  return {
    network: command(output('cidr', '10.20.0.0/16')),
    cluster: command(`test -s "$OARLOCK_VARIABLES" || exit 1; ${output('endpoint', 'https://cluster.example')}`, {
      variablesFrom: [{ stackRef: { name: 'network' } }],
    }),
    app: command(`echo "deploying"; sleep 0.3`, {
      variablesFrom: [{ stackRef: { name: 'cluster' } }, { secretRef: { name: 'app-credentials' } }],
    }),
    database: command('sleep 0.5'),
    certificates: command('sleep 0.2'),
    report: command('echo "all is well"'),
  }
}

/** Creates a Tenant in each tenant partition, with a namespace of its name, and applies the sample to it. */
export async function applyFleet(
  client: Client,
  tenantPartitions: readonly string[],
  resourcePartitions: readonly string[],
): Promise<void> {
  for (const [index, partition] of tenantPartitions.entries()) {
    const name = `tenant-${index + 1}`
    const spec = { namespaceSelector: { matchLabels: { 'oarlock.dev/tenant': name } } }
    await client
      .resource(tenantResource)
      .apply({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec }, { force: true })
    await createNamespace(client, name)
    await client
      .resource(secretResource)
      .apply({ metadata: { namespace: name, name: 'app-credentials' }, stringData: { database_password: 'correct-horse' } } as never, {
        force: true,
      })
    const pool = poolOf(resourcePartitions[index % resourcePartitions.length] ?? '')
    for (const [stack, stackSpec] of Object.entries(sampleStacks(pool)))
      await client.resource(stackResource).apply({ metadata: { namespace: name, name: stack }, spec: stackSpec }, { force: true })
  }
}

/** The gateway learns of a new Tenant by its watch of home, a moment after it was created. */
async function createNamespace(client: Client, name: string): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await client.resource(namespaceResource).apply({ metadata: { name, labels: { 'oarlock.dev/tenant': name } } }, { force: true })
      return
    } catch (error) {
      if (!isReason(error, 'Forbidden') || attempt === 50) throw error
      await sleep(100)
    }
  }
}

export type NamespaceProgress = { readonly namespace: string; readonly ready: number; readonly total: number }

/** Of all namespaces, read with one list over all partitions. */
export async function fleetProgress(client: Client): Promise<NamespaceProgress[]> {
  const { items } = await client.resource(stackResource).listAll({})
  const byNamespace = Map.groupBy(items, ({ metadata }) => metadata.namespace ?? '')
  return [...byNamespace]
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([namespace, stacks]) => ({
      namespace,
      total: stacks.length,
      ready: stacks.filter(({ status }) => findCondition(status?.conditions, 'Ready')?.status === 'True').length,
    }))
}

export const isFleetReady = (namespaces: readonly NamespaceProgress[]): boolean =>
  namespaces.length > 0 && namespaces.every(({ ready, total }) => ready === total && total === stacksPerTenant)
