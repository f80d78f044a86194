import { parseAddress, roles } from '../../app/index.ts'
import { type AuditFlags, auditOptions } from '../options.ts'
import { certificateFiles, type RoleListenOptions } from '../role-options.ts'
import { type RoleOptions, runRole } from '../run-role.ts'

/** `oarlock stores`: runs the state store and the log store until a signal ends it. Returns the exit code. */
export async function stores(
  options: RoleOptions & RoleListenOptions & AuditFlags & { replaceStores?: boolean; partition?: string; workersKubeconfig?: string },
): Promise<number> {
  return await runRole('stores', options, async ({ client, log, dataDir, fail }) => {
    const { startStoresProcess } = await roles.stores()
    const { url, notReady, stop } = await startStoresProcess({
      ...{ client, log, dataDir, names: options.tlsSan, advertiseUrl: options.advertiseUrl },
      replace: options.replaceStores === true,
      partition: options.partition,
      workersKubeconfig: options.workersKubeconfig,
      audit: auditOptions(options, dataDir),
      onLost: fail,
      listen: parseAddress(options.listen),
      certificateFiles: certificateFiles(options, 'stores'),
    })
    return {
      rows: [
        ['stores', url],
        ['API', client.server],
        ['data', dataDir],
      ],
      notReady,
      ready: () => 'serving states and logs',
      stop,
    }
  })
}
