import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { workerPoolResource, workerResource } from '../../src/api/index.ts'
import type { Client } from '../../src/kubernetes/client/index.ts'
import type { Installation } from './installation.ts'

export type RolesOptions = {
  readonly tenantPartitions: readonly string[]
  readonly resourcePartitions: readonly string[]
  /** In each resource partition. */
  readonly workers: number
  /** In all resource partitions. */
  readonly hollow: number
  /** Of the hollow workers: durations of their Runs (`oarlock hollow --profile`). Default: they take no time. */
  readonly hollowProfile?: string | undefined
}

const any = ['--listen', '127.0.0.1:0']
const registrationTimeoutMs = 60_000

/** The pool of the workers of a resource partition. */
export const poolOf = (partition: string): string => `pool-${partition}`

/** Starts the stores and controllers of each tenant partition, the controllers of home, the join service, and workers; returns when the workers are registered. */
export async function startRoles(
  installation: Installation,
  client: Client,
  { tenantPartitions, resourcePartitions, workers, hollow, hollowProfile }: RolesOptions,
): Promise<void> {
  const { kubeconfig, directory } = installation
  for (const name of resourcePartitions) {
    const metadata = { name: poolOf(name), labels: { 'oarlock.dev/partition': name } }
    await client.resource(workerPoolResource).apply({ metadata, spec: { mode: 'External', lifecycle: 'Warm' } }, { force: true })
  }
  const own = (name: string) => ['--kubeconfig', installation.partitionKubeconfig(name), '--workers-kubeconfig', kubeconfig]
  const startController = (name: string) => {
    const args = ['controller', ...own(name), '--partition', name, '--no-default-pool', '--data', `controller-${name}`, ...any]
    return installation.add(`controller-${name}`, [...args, '--health-address', '127.0.0.1:0'])
  }
  const starting = tenantPartitions.flatMap(name => [
    installation.add(`stores-${name}`, ['stores', ...own(name), '--partition', name, '--data', `stores-${name}`, ...any]),
    startController(name),
  ])
  // It writes the status of the pools.
  starting.push(startController('home'))
  starting.push(installation.add('join-service', ['join-service', '--kubeconfig', kubeconfig, '--data', 'join-service', ...any]))
  await Promise.all(starting.map(role => role.until(/^ready: /m)))
  const server = installation.role('join-service').printed('join')
  for (const partition of resourcePartitions) {
    if (workers === 0) break
    const token = (await installation.run('token', 'create', '--pool', poolOf(partition), '--kubeconfig', kubeconfig)).trim()
    for (let number = 1; number <= workers; number++) {
      const name = `${partition}-worker-${number}`
      const directories = { OARLOCK_RUNS_DIR: join(directory, name, 'runs'), OARLOCK_CACHE_DIR: join(directory, name, 'cache') }
      installation.add(name, ['worker', '--server', server, '--name', name], { OARLOCK_TOKEN: token, ...directories })
    }
  }
  for (const [index, partition] of resourcePartitions.entries()) {
    const count = Math.floor(hollow / resourcePartitions.length) + (index < hollow % resourcePartitions.length ? 1 : 0)
    if (count === 0) continue
    const pool = `hollow-${partition}`
    const metadata = { name: pool, labels: { 'oarlock.dev/partition': partition } }
    await client.resource(workerPoolResource).apply({ metadata, spec: { mode: 'External', lifecycle: 'Warm' } }, { force: true })
    installation.add(`hollow-${partition}`, [
      'hollow',
      '--kubeconfig',
      kubeconfig,
      '--pool',
      pool,
      '--workers',
      String(count),
      ...['--renew', '10s'],
      ...(hollowProfile === undefined ? [] : ['--profile', hollowProfile]),
    ])
  }
  await registered(client, workers * resourcePartitions.length + hollow)
}

async function registered(client: Client, expected: number): Promise<void> {
  const deadlineMs = Date.now() + registrationTimeoutMs + expected * 10
  for (;;) {
    const { items } = await client.resource(workerResource).listAll({})
    const ready = items.filter(({ status }) => status?.phase === 'Ready' || status?.phase === 'Busy').length
    if (ready >= expected) return
    if (Date.now() > deadlineMs) throw new Error(`only ${ready} of ${expected} workers have registered: see the logs of the workers`)
    await sleep(200)
  }
}
