import { join } from 'node:path'
import {
  encryptionConfigPath,
  encryptionKeyNames,
  type KeyRotation,
  rotateKeyOfDataDirectory,
  ServerStartError,
} from '../../kubernetes/server/index.ts'
import { dataDirectory, withClient } from '../access.ts'
import { dataError } from '../data-error.ts'
import { serialize } from '../output/print-objects.ts'
import { confirm, note, print } from '../terminal.ts'

export type RotateOptions = {
  data?: string
  kubeconfig?: string
  context?: string
  removeOldKeys?: boolean
  yes?: boolean
  output?: string
}
type Access = Pick<RotateOptions, 'kubeconfig' | 'context'>

/** `oarlock encryption rotate`: by the running server if there is one, else in the files of the data directory. */
export async function rotate({ data, kubeconfig, context, removeOldKeys = false, yes = false, output }: RotateOptions): Promise<void> {
  const isRemote = kubeconfig !== undefined || context !== undefined
  const dataDir = dataDirectory(data)
  if (removeOldKeys && !yes) {
    const keys = isRemote ? await keysOfServer({ kubeconfig, context }) : keysOfDirectory(dataDir)
    const question = `re-encrypt all Secrets, then remove ${keys.join(', ')}? Backups that need a removed key cannot be restored without a copy of it.`
    if (keys.length > 0) await confirm(question, {})
  }
  const rotation = await (isRemote ? rotateServer({ kubeconfig, context }, removeOldKeys) : rotateDirectory(dataDir, removeOldKeys))
  if (output === 'json' || output === 'yaml') {
    print(await serialize({ ...rotation }, output))
    return
  }
  const { key, objects, olderKeys } = rotation
  print(`${objects} objects are encrypted with the new key ${key}`)
  if (olderKeys.length > 0) print(`kept for earlier backups: ${olderKeys.join(', ')}`)
  note(
    `back up ${isRemote ? 'keys/encryption-config.json of the data directory' : encryptionConfigPath(dataDir)} again, separately from the database`,
  )
}

function keysOfDirectory(dataDir: string): readonly string[] {
  try {
    return encryptionKeyNames(dataDir)
  } catch (error) {
    throw dataError(error)
  }
}

async function keysOfServer(access: Access): Promise<readonly string[]> {
  return await withClient(access, async client => {
    const response = await client.request({ method: 'GET', path: '/encryption/keys' })
    return ((await response.json()) as { keys: string[] }).keys
  })
}

async function rotateDirectory(dataDir: string, removesOldKeys: boolean): Promise<KeyRotation> {
  try {
    return await rotateKeyOfDataDirectory(dataDir, removesOldKeys)
  } catch (error) {
    if (!(error instanceof ServerStartError) || error.code !== 'DataInUse') throw dataError(error)
    return await rotateServer({ kubeconfig: join(dataDir, 'kubeconfig') }, removesOldKeys)
  }
}

async function rotateServer(access: Access, removesOldKeys: boolean): Promise<KeyRotation> {
  return await withClient(access, async client => {
    const path = `/encryption/rotate${removesOldKeys ? '?removeOldKeys=true' : ''}`
    const response = await client.request({ method: 'POST', path, timeoutMs: 600_000 })
    return (await response.json()) as KeyRotation
  })
}
