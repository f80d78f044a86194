import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { tenantResource } from '../../src/api/index.ts'
import { startGateway } from '../../src/app/gateway/start-gateway.ts'
import { issueGatewayConfiguration, issuePartitionConfiguration } from '../../src/app/partition/issue-configuration.ts'
import { startHome } from '../../src/app/partition/start-home.ts'
import { startPartition } from '../../src/app/partition/start-partition.ts'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { silentLog } from '../../src/kubernetes/util/index.ts'
import { eventually } from '../support/eventually.ts'
import { freePorts } from '../support/free-ports.ts'
import { createPool, groupsOf, type Target } from './target.ts'

/** Partitions besides home, by name. */
const partitionRoles = { t1: 'Tenants', t2: 'Tenants', r1: 'Resources' } as const
/** Tenants, and their partitions. */
const twoTenants: NonNullable<GatewayTargetOptions['tenants']> = { acme: 't1', umbrella: 't2' }
const tenantLabel = 'oarlock.dev/tenant'
const ttlMs = 3_600_000

/** A gateway before home, two tenant partitions and a resource partition, as users start them, all in this process. */
export type GatewayTarget = Target & {
  /** Of the administrator, through the gateway. */
  readonly kubeconfigText: string
  /** The server of home. */
  readonly homeUrl: string
}

export type GatewayTargetOptions = {
  /** Whether new namespaces get what controllers create in them. Default false: kube-apiserver alone creates nothing. */
  readonly namespaceDefaults?: boolean
  /** Tenants, and their partitions. With one of them, namespaces need no label. Default: one in each tenant partition. */
  readonly tenants?: Readonly<Record<string, 't1' | 't2'>>
}

/** Starts home, its partitions and a gateway in a temporary directory. Namespaces of transcripts are spread over the Tenants by their names. */
export async function startGatewayTarget(options: GatewayTargetOptions = {}): Promise<GatewayTarget> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-conformance-'))
  const stops: (() => Promise<unknown>)[] = []
  const close = async () => {
    for (const stop of stops.reverse()) await stop()
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    return { ...(await start(directory, stops, options)), close }
  } catch (error) {
    await close()
    throw error
  }
}

/** The same one for the same name in every run. */
const spread = (name: string, among: readonly string[]): string =>
  among[(createHash('sha256').update(name).digest()[0] ?? 0) % among.length] ?? ''

async function start(
  directory: string,
  stops: (() => Promise<unknown>)[],
  { namespaceDefaults = false, tenants = twoTenants }: GatewayTargetOptions,
): Promise<Omit<GatewayTarget, 'close'>> {
  const log = silentLog
  const listen = { host: '127.0.0.1', port: 0 }
  const options = { listen, log, namespaceDefaults, storage: { synchronous: 'OFF' } } as const
  const homeDir = join(directory, 'home')
  const home = await startHome({ ...options, dataDir: homeDir, name: 'home' })
  stops.push(() => home.stop({ graceMs: 200 }))
  for (const [name, role] of Object.entries(partitionRoles)) {
    const { configuration } = await issuePartitionConfiguration(homeDir, { name, roles: [role], ttlMs }, Date.now())
    const partition = await startPartition({ ...options, dataDir: join(directory, name), configuration })
    stops.push(() => partition.stop({ graceMs: 200 }))
    await eventually(() => partition.notReady().length === 0, `partition ${name} to have what home has`)
  }
  const client = await createClient({ kubeconfig: join(homeDir, 'kubeconfig') })
  stops.push(() => client.close())
  for (const [name, partition] of Object.entries(tenants))
    await client.resource(tenantResource).create({ metadata: { name, labels: { 'oarlock.dev/partition': partition } }, spec: {} })
  const [port = 0] = await freePorts(1)
  const url = `https://127.0.0.1:${port}`
  const { configuration, kubeconfig } = await issueGatewayConfiguration(homeDir, { names: ['127.0.0.1'], server: url, ttlMs }, Date.now())
  const gateway = await startGateway({ configuration, listen: { ...listen, port }, log })
  stops.push(() => gateway.stop())
  await eventually(() => gateway.notReady().length === 0, 'the gateway to be ready')
  const pool = createPool(url)
  stops.push(() => pool.destroy())
  const config: { users: { user: { token: string } }[] } = parse(readFileSync(join(homeDir, 'kubeconfig'), 'utf8'))
  const others = Object.entries(groupsOf).filter(([name]) => name !== 'admin')
  return {
    url,
    pool,
    kubeconfigText: kubeconfig,
    homeUrl: home.server.url,
    tokens: {
      admin: config.users[0]?.user.token ?? '',
      ...Object.fromEntries(others.map(([name, group]) => [name, home.server.issueToken({ name, groups: [group], ttlMs })])),
      wrong: 'no-such-token',
    },
    namespaceLabels: name => ({ [tenantLabel]: spread(name, Object.keys(tenants)) }),
  }
}
