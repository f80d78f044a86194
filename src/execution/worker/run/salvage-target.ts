import type { Run } from '../../../api/index.ts'
import { parseServerAddress } from '../../../kubernetes/util/index.ts'
import type { SalvageTarget } from '../supervisor/index.ts'

/** Where the supervisor saves the Run's state file if this worker cannot: the same path, with the same epoch (invariant 3). */
export function salvageTarget(
  run: Run,
  { storeUrl, caCertificate, token, path }: { storeUrl: string; caCertificate: string | undefined; token: string; path: string },
): SalvageTarget {
  const parts = [run.metadata.namespace ?? 'default', run.spec.stackRef.name, 'run', run.metadata.name, 'state']
  const { baseUrl, socketPath } = parseServerAddress(storeUrl)
  const url = `${baseUrl}/state/${parts.map(encodeURIComponent).join('/')}`
  return { url, ...(socketPath !== undefined && { socketPath }), caCertificate, token, epoch: run.spec.epoch, path }
}
