import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspectBackup } from '../../kubernetes/server/index.ts'
import { inspectStateFile } from '../../stores/state/state-copy.ts'
import { readTar } from '../tar.ts'
import { backupFiles } from './backup-files.ts'
import { decryptKeys } from './backup-keys.ts'
import { type BackupManifest, damaged, isLogFile, isObjectsOnly } from './manifest.ts'
import { missingStates } from './missing-states.ts'
import { extract, openBackup, readText } from './open-backup.ts'

export type BackupVerification = {
  readonly path: string
  readonly manifest: BackupManifest
  /** Stacks whose state is not in the backup. */
  readonly missing: readonly string[]
  /** Whether the passphrase decrypts the keys; undefined when none was passed, or there are no keys. */
  readonly keysDecrypted?: boolean
}

/**
 * Reads a whole backup: digests of all files, every row of the databases, and whether each Stack that refers to a state has one. The databases are extracted
 * to a temporary directory.
 * @throws {AppStartError} or {ServerStartError} if it cannot be restored.
 */
export async function verifyBackup(path: string, { passphrase }: { passphrase?: string | undefined } = {}): Promise<BackupVerification> {
  const backup = await openBackup(path)
  const { manifest, positions } = backup
  const work = mkdtempSync(join(tmpdir(), 'oarlock-verify-'))
  try {
    const at = (name: string) => join(work, name)
    for (const file of manifest.files) await extract(backup, file, file.name.endsWith('.db') ? at(file.name) : undefined)
    let missing: string[] = []
    if (manifest.objects) inspectBackup(at(backupFiles.objects), path)
    const newestVersions = manifest.states ? inspectStateFile(at(backupFiles.states)).newestVersions : new Map<string, number>()
    if (manifest.objects && !isObjectsOnly(manifest)) missing = missingStates(at(backupFiles.objects), newestVersions)
    const logs = positions.get(backupFiles.logs)
    if (manifest.logs && logs) {
      const range = { start: logs.offset, end: logs.offset + logs.size }
      for await (const { name } of readTar(path, range)) if (!isLogFile(name)) throw damaged(path, `${backupFiles.logs} has ${name}`)
    }
    const keys = positions.get(backupFiles.keys)
    if (!keys || passphrase === undefined) return { path, manifest, missing }
    await decryptKeys(await readText(path, keys), passphrase)
    return { path, manifest, missing, keysDecrypted: true }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
