import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { AppStartError } from './app-start-error.ts'

const keyBytes = 32

/** The key that states are encrypted with, in `<data>/keys/state.key`; made at the first start, readable by its owner only. */
export function readStateKey(dataDir: string): Buffer {
  const directory = join(dataDir, 'keys')
  const path = join(directory, 'state.key')
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    text = makeKey(path)
  }
  const key = Buffer.from(text.trim(), 'hex')
  if (key.length === keyBytes) return key
  throw new AppStartError(
    'DataDirectory',
    `${path} must hold ${keyBytes} bytes as hex, got ${key.length}`,
    'put the file back from a backup: without it the states cannot be read',
  )
}

/** A crash leaves no file or a whole one: half a key would lose every state that is written with it. */
function makeKey(path: string): string {
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
