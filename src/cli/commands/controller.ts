import { join, resolve } from 'node:path'
import { parseAddress, roles } from '../../app/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { usageError } from '../cli-error.ts'
import { certificateFiles, type RoleListenOptions } from '../role-options.ts'
import { type RoleOptions, runRole } from '../run-role.ts'
import { print } from '../terminal.ts'
import { packageVersion } from '../version.ts'

export type ControllerOptions = RoleOptions &
  RoleListenOptions & {
    healthAddress: string
    allowPath: string[]
    defaultPool: boolean
    maxRunning?: number
    shards?: number
    partition?: string
    workersKubeconfig?: string
    viewsPerWorker: number
    approvalTimeout: string
    leaseDuration: string
    workerLeaseDuration: string
    externalMetrics?: string
    externalMetricsTls: 'Own' | 'CertManager'
    crds: 'check' | 'install' | 'upgrade'
  }

/** `oarlock controller`: runs the controllers until a signal ends them. Returns the exit code. */
export async function controller(options: ControllerOptions): Promise<number> {
  const { partition, workersKubeconfig, viewsPerWorker } = options
  if ((partition === undefined) !== (workersKubeconfig === undefined))
    throw usageError('--partition and --workers-kubeconfig must be used together', 'oarlock controller --help')
  return await runRole('controller', options, async ({ client, access, log, dataDir }) => {
    const { startControllerProcess } = await roles.controller()
    const shared =
      partition !== undefined && workersKubeconfig !== undefined ? { partition, kubeconfig: workersKubeconfig, viewsPerWorker } : undefined
    const started = await startControllerProcess({
      shared,
      ...{ client, access, log, crds: options.crds, maxRunning: options.maxRunning, shards: options.shards },
      createDefaultPool: options.defaultPool,
      approvalTimeoutMs: parseDuration(options.approvalTimeout),
      cacheDir: join(dataDir, 'cache'),
      allowPaths: options.allowPath.map(path => resolve(path)),
      healthAddress: parseAddress(options.healthAddress),
      queue: {
        dataDir,
        listen: parseAddress(options.listen),
        names: options.tlsSan,
        advertiseUrl: options.advertiseUrl,
        certificateFiles: certificateFiles(options, 'controller'),
      },
      externalMetrics:
        options.externalMetrics === undefined
          ? undefined
          : { listen: parseAddress(options.externalMetrics), certificate: options.externalMetricsTls },
      leaseDurationMs: parseDuration(options.leaseDuration),
      workerLeaseMs: parseDuration(options.workerLeaseDuration),
      version: packageVersion(),
      onLeadershipChange: isLeading => {
        const work = options.shards === undefined ? 'the controllers' : 'dispatch'
        print(isLeading ? `leading: running ${work}` : `lost the Lease: ${work} stopped, contending again`)
      },
    })
    const { httpUrl, identity, notReady, leader, share, stop } = started
    return {
      rows: [
        ['API', client.server],
        ...(partition === undefined ? [] : [['partition', partition] as const]),
        ['health', httpUrl],
        ['identity', identity],
      ],
      notReady,
      ready: () => {
        const holder = leader()
        if (holder === undefined) return undefined
        const leadership = holder === identity ? 'this process leads' : `waiting for leadership, ${holder} leads`
        if (options.shards === undefined) return leadership
        const own = share()
        return `${leadership}; ${own && own.buckets > 0 ? `slot ${own.slot} of the Stacks` : 'waiting for a share of the Stacks'}`
      },
      stop,
    }
  })
}
