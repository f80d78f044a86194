import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { defaults } from '../../api/index.ts'
import { parseAddress, roles } from '../../app/index.ts'
import { formatError } from '../cli-error.ts'
import { joinEndpoint } from '../join-endpoint.ts'
import { parseLabels } from '../parse-labels.ts'
import { type RoleOptions, runRole } from '../run-role.ts'
import { note, print } from '../terminal.ts'
import { workerLauncher } from '../worker-launcher.ts'

export type PoolOptions = RoleOptions & {
  pool: string[]
  maxWorkers?: number
  label: string[]
  allowPath: string[]
  healthAddress?: string
}

/** `oarlock pool`: starts the workers that a controller elsewhere requests, until a signal ends it. Returns the exit code. */
export async function pool(options: PoolOptions): Promise<number> {
  const pools = options.pool.length > 0 ? options.pool : [defaults.pool]
  const maxWorkers = options.maxWorkers ?? Math.max(2, cpus().length)
  const labels = parseLabels(options.label, 'pool')
  return await runRole('pool', options, async ({ client, log, dataDir, fail }) => {
    const { startPool } = await roles.pool()
    const healthAddress = options.healthAddress === undefined ? undefined : parseAddress(options.healthAddress)
    const role = startPool({
      ...{ client, dataDir, pools, maxWorkers, labels, healthAddress, log, launcher: workerLauncher },
      allowPaths: options.allowPath.map(path => resolve(path)),
      joinEndpoint: async () => await joinEndpoint(client).catch(withHint),
    })
    role.whenReady.then(
      () => {
        if (healthAddress) print(`health is served at http://${healthAddress.host}:${role.healthPort}`)
      },
      (error: Error) => fail(error),
    )
    const adopted = role.running()
    return {
      rows: [
        ['API', client.server],
        ['identity', role.agent],
        ['workers', `at most ${maxWorkers}${adopted.length > 0 ? `, ${adopted.length} of them adopted` : ''}`],
        ['data', dataDir],
      ],
      notReady: role.notReady,
      ready: () => `claiming requests of ${listOf(pools)}`,
      interrupt: role.interrupt,
      stop: async ({ graceMs }) =>
        await role.stop({
          graceMs,
          onProgress: running => note(`waiting for ${running === 1 ? '1 worker' : `${running} workers`} to finish`),
        }),
    }
  })
}

/** The status of a worker that does not start shows the message only. */
function withHint(error: unknown): never {
  const { message, hint } = formatError(error)
  throw new Error(hint === undefined ? message : `${message}; ${hint}`, { cause: error })
}

const listOf = (pools: readonly string[]) => `${pools.length === 1 ? 'pool' : 'pools'} ${pools.join(', ')}`
