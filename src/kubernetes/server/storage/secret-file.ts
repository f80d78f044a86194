import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'

/** Writes a file with mode 0600 atomically: on disk when it returns; after a crash or an error the file has its old content. */
export function writeSecretFile(path: string, text: string): void {
  // Not imported: the storage thread loads this module and rarely writes.
  const { randomBytes } = process.getBuiltinModule('node:crypto')
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  const file = openSync(temporary, 'wx', 0o600)
  try {
    try {
      writeFileSync(file, text)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    syncPath(dirname(path))
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** Reads a file; creates it if it does not exist. */
export function readOrCreate(path: string, make: () => string): string {
  const found = readIfExists(path)
  if (found !== undefined) return found
  const text = make()
  writeSecretFile(path, text)
  return text
}

export function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Makes the content of a file, or the names in a directory, survive a power failure. */
export function syncPath(path: string): void {
  const handle = openSync(path, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
