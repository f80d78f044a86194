import { readFileSync } from 'node:fs'
import { parseAddress, roles } from '../../app/index.ts'
import { clusterCaCertificate } from '../../kubernetes/client/index.ts'
import { usageError } from '../cli-error.ts'
import type { RoleListenOptions } from '../role-options.ts'
import { type RoleOptions, runRole } from '../run-role.ts'

export type JoinServiceOptions = RoleOptions & RoleListenOptions & { apiUrl?: string; apiCaFile?: string }

/** `oarlock join-service`: runs the service where workers join, until a signal ends it. Returns the exit code. */
export async function joinService(options: JoinServiceOptions): Promise<number> {
  return await runRole('join-service', options, async ({ client, access, log, dataDir }) => {
    const { startJoinProcess } = await roles.joinService()
    const { url, notReady, stop } = await startJoinProcess({
      ...{ client, log, dataDir, names: options.tlsSan, advertiseUrl: options.advertiseUrl },
      listen: parseAddress(options.listen),
      api: {
        url: options.apiUrl ?? client.server,
        caCertificate: options.apiCaFile === undefined ? await clusterCaCertificate(access) : readCa(options.apiCaFile),
      },
    })
    return {
      rows: [
        ['join', url],
        ['API', options.apiUrl ?? client.server],
        ['data', dataDir],
      ],
      notReady,
      ready: () => 'accepting workers',
      stop,
    }
  })
}

function readCa(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw usageError(`--api-ca-file ${path}: ${(error as NodeJS.ErrnoException).code}`, 'oarlock join-service --help')
  }
}
