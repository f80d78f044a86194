import { join } from 'node:path'
import { nameErrors } from '../../kubernetes/object/index.ts'
import { sha256 } from '../../kubernetes/util/index.ts'

/** The Run that a log belongs to. */
export type RunKey = { namespace: string; run: string }

/** A namespace or Run name that is invalid. */
export class LogNameError extends Error {
  override readonly name = 'LogNameError'
}

/** Longer names would not fit into a file name with the suffix. */
const maxFileName = 200

/**
 * The path of a Run's log without suffix: `<directory>/<namespace>/<run>`.
 * Kubernetes' name rules prevent path traversal: no `/`, no leading `.`.
 * @throws {LogNameError}
 */
export function logPath(directory: string, key: RunKey): string {
  checkRunKey(key)
  const { namespace, run } = key
  const digest = () => sha256(run).slice(0, 16)
  return join(directory, namespace, run.length <= maxFileName ? run : `${run.slice(0, maxFileName - 17)}-${digest()}`)
}

/** @throws {LogNameError} */
export function checkRunKey({ namespace, run }: RunKey): void {
  checkName('namespace', namespace, 'dns1123Label')
  checkName('run', run, 'dns1123Subdomain')
}

function checkName(field: string, name: string, rule: 'dns1123Label' | 'dns1123Subdomain'): void {
  const [error] = nameErrors(name, rule)
  if (error !== undefined) throw new LogNameError(`${field} ${JSON.stringify(name.slice(0, 100))} is invalid: ${error}`)
}
