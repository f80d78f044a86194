import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { makeDirectories } from '../../kubernetes/util/index.ts'
import { AppStartError } from '../app-start-error.ts'

const keyBytes = 32

/** The encryption key of states, in `<data>/keys/state.key`. Created at the first start, readable only by its owner. */
export function readStateKey(dataDir: string): Buffer {
  const directory = join(dataDir, 'keys')
  const path = join(directory, 'state.key')
  makeDirectories(directory, 0o700)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    text = createKey(path)
  }
  const key = Buffer.from(text.trim(), 'hex')
  if (key.length === keyBytes) return key
  throw new AppStartError(
    'DataDirectory',
    `${path} must contain ${keyBytes} bytes in hexadecimal, got ${key.length}`,
    'restore the file from a backup: states cannot be decrypted without it',
  )
}

/** Written atomically: every state that is encrypted with a truncated key would be lost. */
function createKey(path: string): string {
  const text = `${randomBytes(keyBytes).toString('hex')}\n`
  const file = openSync(`${path}.tmp`, 'w', 0o600)
  try {
    writeSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(`${path}.tmp`, path)
  return text
}
