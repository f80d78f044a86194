import { existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { type BackupSummary, backUpDataDirectory, ServerStartError, writeBackup } from '../../kubernetes/server/index.ts'
import { formatBytes } from '../../kubernetes/util/index.ts'
import { dataDirectory, withClient } from '../access.ts'
import { CliError } from '../cli-error.ts'
import { note, print } from '../console.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'

export type BackupOptions = { to: string; data?: string; kubeconfig?: string; context?: string; force?: boolean; output?: string }

/** `oarlock backup`: copies from the running server if there is one, else from the files of the data directory. */
export async function backup(options: BackupOptions): Promise<void> {
  const path = resolve(options.to)
  const { kubeconfig, context } = options
  const dataDir = dataDirectory(options.data)
  if (path === join(dataDir, 'oarlock.db')) throw new CliError(`${path} is the database itself`, { hint: 'choose another file with --to' })
  if (existsSync(path) && !options.force)
    throw new CliError(`${path} already exists`, { hint: 'choose another file with --to, or overwrite it with --force' })
  try {
    const isRemote = kubeconfig !== undefined || context !== undefined
    await printSummary(isRemote ? await backUpServer(path, { kubeconfig, context }) : await backUpDirectory(dataDir, path), options.output)
  } catch (error) {
    throw dataError(toTargetError(error, path))
  }
}

/** A directory that does not exist is not created: it may be an unmounted disk. */
function toTargetError(error: unknown, path: string): unknown {
  const { code, path: failedPath } = error as NodeJS.ErrnoException
  if (code !== 'ENOSPC' && !failedPath?.startsWith(path)) return error
  const hint = code === 'ENOSPC' ? 'free some space' : 'choose another file in an existing, writable directory with --to'
  return new CliError(`${path} cannot be written (${code})`, { exitCode: exitCodes.dataDirectory, hint, cause: error })
}

async function backUpDirectory(dataDir: string, path: string): Promise<BackupSummary> {
  try {
    return await backUpDataDirectory(dataDir, path)
  } catch (error) {
    if (!(error instanceof ServerStartError) || error.code !== 'DataInUse') throw error
    return await backUpServer(path, { kubeconfig: join(dataDir, 'kubeconfig') })
  }
}

async function backUpServer(path: string, access: { kubeconfig?: string; context?: string }): Promise<BackupSummary> {
  return await withClient(access, client =>
    writeBackup(path, async temporary => {
      const { body, headers } = await client.stream({ method: 'GET', path: '/backup' })
      const file = await open(temporary, 'w')
      let bytes = 0
      try {
        for await (const chunk of body) bytes += (await file.write(chunk)).bytesWritten
      } finally {
        await file.close()
      }
      const expected = Number(headers['content-length'])
      if (bytes !== expected) throw new CliError(`the server sent ${bytes} of ${expected} bytes`, { hint: 'try again' })
    }),
  )
}

async function printSummary(summary: BackupSummary, output: string | undefined): Promise<void> {
  const { path, objects, revision, bytes, encrypted } = summary
  if (output === 'json' || output === 'yaml') {
    print(await serialize({ ...summary, encrypted: Object.fromEntries(encrypted) }, output))
    return
  }
  print(`${path}: ${objects} objects up to resource version ${revision}, ${formatBytes(bytes)}`)
  for (const [key, count] of encrypted) print(`${count} of them are encrypted with the key ${key}, which is not in the backup`)
  if (encrypted.size > 0) note('back up keys/encryption-config.json of the data directory separately: they cannot be restored without it')
}
