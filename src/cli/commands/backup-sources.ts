import { createWriteStream, existsSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { type BackupResult, type BackupSources, backups, type StatesOrigin } from '../../app/index.ts'
import type { Client, StreamResponse } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { type BackupSummary, backUpDataDirectory, ServerStartError, writeBackup } from '../../kubernetes/server/index.ts'
import { makeDataDirectory } from '../../kubernetes/util/index.ts'
import { storeErrorMessage } from '../../stores/state/index.ts'
import { withClient } from '../access.ts'
import { CliError, forbiddenHint } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { packageVersion } from '../version.ts'

/** What the user asked for. */
export type BackupParts = {
  includeLogs?: boolean
  objectsOnly?: boolean
  keys: Extract<BackupSources['keys'], object> | undefined
}

/** From the files of a data directory, or from the server that runs on it. */
export async function backUpDirectory(dataDir: string, path: string, parts: BackupParts): Promise<BackupResult> {
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

/** From a running server and its stores. */
export async function backUpServer(
  path: string,
  access: { kubeconfig?: string; context?: string },
  parts: BackupParts,
): Promise<BackupResult> {
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

const statesOr = async ({ objectsOnly }: BackupParts, states: BackupSources['states']) =>
  objectsOnly ? (await backups()).objectsOnlyReason : states
const logsOr = ({ includeLogs }: BackupParts, logs: BackupSources['logs']) =>
  includeLogs ? logs : 'include them with "oarlock backup --include-logs"'
const keysReason = 'copy the directory keys/ to another place, or include it with "oarlock backup --include-keys"'

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
    if (message === undefined) throw error
    const hint = forbiddenHint(message)
    throw new CliError(message, { exitCode: exitCodes.rejected, cause: error, ...(hint && { hint }) })
  })
  const file = createWriteStream(to, { mode: 0o600, flush: true })
  await pipeline(response.body, file)
  const expected = response.headers['content-length']
  if (expected !== undefined && file.bytesWritten !== Number(expected))
    throw new CliError(`the server sent ${file.bytesWritten} of ${expected} bytes`, { hint: 'try again' })
  return response
}
