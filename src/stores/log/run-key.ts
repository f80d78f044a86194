import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { nameErrors } from '../../kubernetes/object/index.ts'

/** Whose log it is. */
export type RunKey = { namespace: string; run: string }

/** A name that could be no file of its own. */
export class LogNameError extends Error {
  override readonly name = 'LogNameError'
}

/** Longer names would not fit into a file name with its suffix. */
const maxFileName = 200

/**
 * Where a Run's log lies, without suffix: `<directory>/<namespace>/<run>`.
 * Kubernetes' name rules leave no way out of the directory: no `/`, no leading `.`.
 * @throws {LogNameError}
 */
export function logPath(directory: string, { namespace, run }: RunKey): string {
  check('namespace', namespace, 'dns1123Label')
  check('run', run, 'dns1123Subdomain')
  const digest = () => createHash('sha256').update(run).digest('hex').slice(0, 16)
  return join(directory, namespace, run.length <= maxFileName ? run : `${run.slice(0, maxFileName - 17)}-${digest()}`)
}

function check(field: string, name: string, rule: 'dns1123Label' | 'dns1123Subdomain'): void {
  const [error] = nameErrors(name, rule)
  if (error !== undefined) throw new LogNameError(`${field} ${JSON.stringify(name.slice(0, 100))} is not valid: ${error}`)
}
