import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type BackupKeys, type BackupResult, backups } from '../../app/index.ts'
import { dataDirectory } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { print } from '../terminal.ts'
import { backUpDirectory, backUpServer } from './backup-sources.ts'
import { passphraseToEncrypt } from './passphrase.ts'
import { expectStates, printBackup } from './print-backup.ts'

export type BackupOptions = {
  to?: string
  data?: string
  kubeconfig?: string
  context?: string
  includeLogs?: boolean
  includeKeys?: boolean
  passphraseFile?: string
  objectsOnly?: boolean
  force?: boolean
  output?: string
}

/** `oarlock backup`: copies from the running server if there is one, else from the files of the data directory. */
export async function backup(options: BackupOptions): Promise<void> {
  if (options.to === undefined) throw usageError('the option --to <file> is required', 'name the file to create')
  const path = resolve(options.to)
  const { kubeconfig, context, output } = options
  const isRemote = kubeconfig !== undefined || context !== undefined
  if (options.includeKeys && isRemote)
    throw usageError('--include-keys reads the data directory of the server', 'run the command on its machine, with --data')
  const dataDir = dataDirectory(options.data)
  if (path === join(dataDir, 'oarlock.db')) throw new CliError(`${path} is the database itself`, { hint: 'choose another file with --to' })
  if (existsSync(path) && !options.force)
    throw new CliError(`${path} already exists`, { hint: 'choose another file with --to, or overwrite it with --force' })
  try {
    const keys = options.includeKeys ? await keysOf(dataDir, options.passphraseFile) : undefined
    const parts = { ...options, keys }
    const result = isRemote ? await backUpServer(path, { kubeconfig, context }, parts) : await backUpDirectory(dataDir, path, parts)
    await printResult(result, output)
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

async function keysOf(dataDir: string, passphraseFile: string | undefined): Promise<{ keys: BackupKeys; passphrase: string }> {
  const { readKeys } = await backups()
  const keys = readKeys(join(dataDir, 'keys'))
  if (keys.names.length === 0)
    throw new CliError(`${join(dataDir, 'keys')} has no keys`, {
      exitCode: exitCodes.dataDirectory,
      hint: 'pass the data directory of a server with --data',
    })
  return { keys, passphrase: await passphraseToEncrypt(passphraseFile) }
}

async function printResult({ path, bytes, manifest, missing }: BackupResult, output: string | undefined): Promise<void> {
  if (output === 'json' || output === 'yaml') print(await serialize({ path, bytes, ...manifest, missing }, output))
  else printBackup({ path, bytes, manifest, missing })
  const remedy = 'the file is written. Put the states back, or decide how each Stack continues without its state: docs/state.md'
  expectStates(path, missing, manifest.states ? remedy : `${remedy}. To leave the states out, pass --objects-only`)
}
