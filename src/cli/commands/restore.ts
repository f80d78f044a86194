import { resolve } from 'node:path'
import { type RestoreSummary, restoreBackup } from '../../kubernetes/server/index.ts'
import { dataDirectory } from '../access.ts'
import { errPaint, note, print } from '../console.ts'
import { dataError } from '../data-error.ts'
import { serialize } from '../output/print-objects.ts'

export type RestoreOptions = { data?: string; force?: boolean; salvage?: boolean; encryptionProviderConfig?: string; output?: string }

/** `oarlock restore`: makes a backup the database of a data directory. */
export async function restore(file: string, options: RestoreOptions): Promise<void> {
  const { data, force, salvage, output, encryptionProviderConfig: encryptionConfig } = options
  const dataDir = dataDirectory(data)
  const summary = attempt(() => restoreBackup({ file: resolve(file), dataDir, force, salvage, encryptionConfig }))
  const { objects, orphans, skippedObjects, replacedPath } = summary
  if (output === 'json' || output === 'yaml') {
    print(await serialize({ ...summary, orphans: Object.fromEntries(orphans) }, output))
    return
  }
  print(`${dataDir}: ${objects} objects restored`)
  if (replacedPath) print(`the previous database was moved to ${replacedPath}`)
  const warn = (text: string) => note(`${errPaint()('yellow', 'warning:')} ${text}`)
  if (skippedObjects.length > 0) warn('what could not be read was skipped:')
  for (const skipped of skippedObjects) note(`  ${skipped}`)
  for (const [resource, count] of orphans) {
    warn(`the owners of ${count} ${resource} are missing: a server that starts on this directory deletes them`)
  }
}

function attempt(restoring: () => RestoreSummary): RestoreSummary {
  try {
    return restoring()
  } catch (error) {
    throw dataError(error)
  }
}
