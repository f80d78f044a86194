import type { BackupManifest } from '../../app/index.ts'
import { formatBytes } from '../../kubernetes/util/index.ts'
import { CliError } from '../cli-error.ts'
import { errPaint, note, print } from '../terminal.ts'

/** What a backup contains and what it omits. */
export function printBackup({
  path,
  bytes,
  manifest,
  missing,
}: {
  path: string
  bytes: number
  manifest: BackupManifest
  missing: readonly string[]
}): void {
  const { objects, states, logs, keys, omitted, createdAt } = manifest
  const counted = objects ? `${objects.count} objects up to resource version ${objects.revision}, ` : ''
  print(`${path}: ${counted}${formatBytes(bytes)}, created ${createdAt}`)
  const included = keys?.names ?? []
  const where = (key: string) => (included.includes(key) ? 'which is in the backup' : 'which is not in the backup')
  for (const [key, count] of Object.entries(objects?.encrypted ?? {})) {
    print(`${count} of them are encrypted with the key ${key}, ${where(key)}`)
  }
  if (states) {
    const { stacks, versions, orphans, plans, locks, key } = states
    print(`states: ${versions} versions of ${stacks} Stacks, ${orphans} orphaned versions, ${plans} plans, ${locks} locks`)
    print(`they are encrypted with the key ${key}, ${where(key)}`)
  }
  if (logs) print(`logs: ${logs.count}`)
  if (keys) print(`keys, encrypted with a passphrase: ${keys.names.join(', ')}`)
  for (const { what, reason } of omitted) print(`not included: ${what} (${reason})`)
  for (const each of missing) note(`${errPaint()('yellow', 'warning:')} ${each}`)
}

/** @throws {CliError} if a Stack of the backup misses its state: what is restored from it would create the resources again. */
export function expectStates(path: string, missing: readonly string[], hint: string): void {
  if (missing.length === 0) return
  throw new CliError(`${missing.length === 1 ? '1 Stack has' : `${missing.length} Stacks have`} no current state in ${path}`, { hint })
}
