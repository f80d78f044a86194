import { resolve } from 'node:path'
import { backups, type InstallationRestore } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { dataError } from '../data-error.ts'
import { serialize } from '../output/print-objects.ts'
import { errPaint, note, print } from '../terminal.ts'
import { passphraseToDecrypt } from './passphrase.ts'

export type RestoreOptions = {
  data?: string
  force?: boolean
  salvage?: boolean
  keys?: string
  passphraseFile?: string
  encryptionProviderConfig?: string
  output?: string
}

/** `oarlock restore`: restores a backup, or the database of an API server, to a data directory. */
export async function restore(file: string, options: RestoreOptions): Promise<void> {
  const { data, force, salvage, output, encryptionProviderConfig: encryptionConfig, keys, passphraseFile } = options
  const dataDir = dataDirectory(data)
  const keysDirectory = keys === undefined ? undefined : resolve(keys)
  const restoreFile = async () => {
    const path = resolve(file)
    const isAsked = passphraseFile !== undefined || keysDirectory === undefined
    const passphrase = isAsked ? await passphraseToDecrypt(passphraseFile, path) : undefined
    const { restoreInstallation } = await backups()
    return await restoreInstallation({ file: path, dataDir, force, salvage, encryptionConfig, keysDirectory, passphrase })
  }
  const summary = await restoreFile().catch((error: unknown) => {
    throw dataError(error)
  })
  if (output === 'json' || output === 'yaml') {
    print(await serialize({ ...summary, orphans: Object.fromEntries(summary.orphans) }, output))
    return
  }
  printRestore(dataDir, summary)
}

function printRestore(dataDir: string, summary: InstallationRestore): void {
  const { manifest, objects, states, logs, leftOut, orphans, skippedObjects, replacedPath, replacedFiles } = summary
  const warn = (text: string) => note(`${errPaint()('yellow', 'warning:')} ${text}`)
  print(`${dataDir}: ${objects} objects restored`)
  if (states > 0) print(`states of ${states} Stacks restored`)
  if (logs > 0) print(`${logs} logs restored`)
  if (replacedPath) print(`the previous database was moved to ${replacedPath}`)
  for (const path of replacedFiles) print(`${path} has what was in its place before`)
  for (const { what, reason } of manifest?.omitted ?? []) print(`not in the backup: ${what} (${reason})`)
  if (!manifest) print('not in the file: states, logs, keys (it is the database of an API server)')
  for (const { what, reason } of leftOut) warn(`not restored: ${what} (${reason})`)
  if (skippedObjects.length > 0) warn('skipped, because it cannot be read:')
  for (const skipped of skippedObjects) note(`  ${skipped}`)
  for (const [resource, count] of orphans) {
    warn(`the owners of ${count} ${resource} are missing: a server that starts on this directory deletes them`)
  }
  note('credentials of workers, join tokens and approvals are void')
  note('hint: after the start, each Stack waits for its review: "oarlock plan STACK", then "oarlock restore accept STACK"')
}
