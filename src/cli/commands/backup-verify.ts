import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { backups } from '../../app/index.ts'
import { CliError, usageError } from '../cli-error.ts'
import { dataError } from '../data-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { serialize } from '../output/print-objects.ts'
import { print } from '../terminal.ts'
import { passphraseIn } from './passphrase.ts'
import { expectStates, printBackup } from './print-backup.ts'

/** `oarlock backup verify FILE` */
export async function verify(file: string, options: { passphraseFile?: string; output?: string }): Promise<void> {
  const path = resolve(file)
  const passphrase = options.passphraseFile === undefined ? undefined : passphraseIn(options.passphraseFile)
  const { isArchive, verifyBackup } = await backups()
  try {
    if (!existsSync(path)) throw new CliError(`${path} does not exist`, { exitCode: exitCodes.dataDirectory, hint: 'name a backup file' })
    if (!isArchive(path)) {
      throw new CliError(`${path} is not a backup with a manifest`, {
        exitCode: exitCodes.dataDirectory,
        hint: 'pass a file that "oarlock backup" created; earlier versions copied the database of the API server only',
      })
    }
    const { manifest, missing, keysDecrypted } = await verifyBackup(path, { passphrase })
    if (passphrase !== undefined && !keysDecrypted) throw usageError(`${path} contains no keys`, 'leave out --passphrase-file')
    const bytes = statSync(path).size
    if (options.output === 'json' || options.output === 'yaml')
      print(await serialize({ path, bytes, ...manifest, missing }, options.output))
    else printBackup({ path, bytes, manifest, missing })
    expectStates(path, missing, 'create another backup')
    if (!options.output) print(`verified: ${manifest.files.length} files${keysDecrypted ? ', the passphrase decrypts the keys' : ''}`)
  } catch (error) {
    throw dataError(error)
  }
}
