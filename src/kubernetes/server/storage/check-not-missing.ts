import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ServerStartError } from './start-error.ts'

/** A server that starts empty in place of one that had objects would look like one that lost them. */
export function checkNotMissing(dataDir: string, file: string): void {
  if (existsSync(file) && statSync(file).size > 0) return
  const evidence = [`${file}-wal`, join(dataDir, 'kubeconfig')].find(existsSync)
  if (evidence === undefined) return
  throw new ServerStartError(
    'DataMissing',
    `${file} is ${existsSync(file) ? 'empty' : 'missing'}, but ${evidence} shows that a server has run here: put the file back, ` +
      `restore a backup (oarlock restore BACKUP --data ${dataDir}), or remove ${evidence} to start empty`,
  )
}
