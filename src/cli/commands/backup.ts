import { createWriteStream, existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type BackupKeys, type BackupResult, type BackupSources, backups, type StatesOrigin } from '../../app/index.ts'
import type { Client, StreamResponse } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type BackupSummary, backUpDataDirectory, ServerStartError, writeBackup } from '../../kubernetes/server/index.ts'
import { makeDataDirectory } from '../../kubernetes/util/index.ts'
import { dataDirectory, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { print } from '../console.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { storeErrorMessage } from '../store-error-message.ts'
import { packageVersion } from '../version.ts'
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

type Parts = Pick<BackupOptions, 'includeLogs' | 'objectsOnly'> & { keys: Extract<BackupSources['keys'], object> | undefined }

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

async function backUpDirectory(dataDir: string, path: string, parts: Parts): Promise<BackupResult> {
  const { backUpLogs, backUpStates, createBackup } = await backups()
  if (existsSync(dataDir)) makeDataDirectory(dataDir)
  const hasStates = existsSync(join(dataDir, 'state', 'state.db'))
  try {
    return await createBackup(
      path,
      {
        objects: to => backUpDataDirectory(dataDir, to),
        states: await statesOr(parts, hasStates ? to => backUpStates(dataDir, to) : 'the data directory has none'),
        logs: logsOr(parts, to => backUpLogs(dataDir, to)),
        keys: parts.keys ?? keysReason,
      },
      { version: packageVersion() },
    )
  } catch (error) {
    if (!(error instanceof ServerStartError) || error.code !== 'DataInUse') throw error
    return await backUpServer(path, { kubeconfig: join(dataDir, 'kubeconfig') }, parts)
  }
}

async function backUpServer(path: string, access: { kubeconfig?: string; context?: string }, parts: Parts): Promise<BackupResult> {
  const { createBackup, hasStores } = await backups()
  return await withClient(access, async client => {
    const states: BackupSources['states'] = (await hasStores(client))
      ? to => downloadStates(client, to)
      : 'no stores have run with this API server'
    return await createBackup(
      path,
      {
        objects: to => downloadObjects(client, to),
        states: await statesOr(parts, states),
        logs: logsOr(parts, typeof states === 'string' ? states : async to => void (await download(client, '/logs/backup', to))),
        keys: parts.keys ?? keysReason,
      },
      { version: packageVersion() },
    )
  })
}

const statesOr = async ({ objectsOnly }: Parts, states: BackupSources['states']) =>
  objectsOnly ? (await backups()).objectsOnlyReason : states
const logsOr = ({ includeLogs }: Parts, logs: BackupSources['logs']) => (includeLogs ? logs : 'include them with --include-logs')
const keysReason = 'copy the directory keys/ to another place, or include it with --include-keys'

async function downloadObjects(client: Client, path: string): Promise<BackupSummary> {
  return await writeBackup(path, async temporary => void (await download(client, '/backup', temporary)))
}

async function downloadStates(client: Client, path: string): Promise<StatesOrigin> {
  const { backupHeaders, stateBackupPath } = await backups()
  const { headers } = await download(client, stateBackupPath, path)
  const header = (name: string) => String(headers[name] ?? '')
  return {
    id: header(backupHeaders.id),
    key: header(backupHeaders.keyId),
    generation: JSON.parse(header(backupHeaders.generation)) as StatesOrigin['generation'],
  }
}

async function download(client: Client, path: string, to: string): Promise<StreamResponse> {
  const response = await client.stream({ method: 'GET', path }).catch((error: unknown) => {
    const message = error instanceof StatusError ? storeErrorMessage(error) : undefined
    throw message === undefined ? error : new CliError(message, { exitCode: exitCodes.rejected, cause: error })
  })
  const file = createWriteStream(to, { mode: 0o600, flush: true })
  await pipeline(response.body, file)
  const expected = response.headers['content-length']
  if (expected !== undefined && file.bytesWritten !== Number(expected))
    throw new CliError(`the server sent ${file.bytesWritten} of ${expected} bytes`, { hint: 'try again' })
  return response
}

async function printResult({ path, bytes, manifest, missing }: BackupResult, output: string | undefined): Promise<void> {
  if (output === 'json' || output === 'yaml') print(await serialize({ path, bytes, ...manifest, missing }, output))
  else printBackup({ path, bytes, manifest, missing })
  const remedy = 'the file is written. Put the states back, or decide how each Stack continues without its state: docs/state.md'
  expectStates(path, missing, manifest.states ? remedy : `${remedy}. To leave the states out, pass --objects-only`)
}
