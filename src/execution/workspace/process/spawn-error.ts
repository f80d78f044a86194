import { accessSync, constants, statSync } from 'node:fs'
import { delimiter, resolve } from 'node:path'

/** A program that could not be started. */
export class SpawnError extends Error {
  override readonly name = 'SpawnError'
  readonly reason: 'CommandNotFound' | 'CommandNotExecutable' | 'DirectoryNotFound' | 'SpawnFailed'
  readonly command: string

  constructor(reason: SpawnError['reason'], command: string, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
    this.command = command
  }
}

type Spawned = { command: string; cwd: string }

/**
 * The path of `command`, looked up as the kernel does it. Needed for a wrapped command: the wrapper would only report that some file was not found.
 * @throws {SpawnError}
 */
export function findCommand({ command, cwd }: Spawned, env: Record<string, string>): string {
  const candidates = command.includes('/')
    ? [resolve(cwd, command)]
    : (env.PATH ?? '').split(delimiter).map(directory => resolve(cwd, directory, command))
  let code: string | undefined
  for (const path of candidates) {
    try {
      if (!statSync(path).isFile()) throw Object.assign(new Error('not a file'), { code: 'EACCES' })
      accessSync(path, constants.X_OK)
      return path
    } catch (error) {
      if (code !== 'EACCES') code = (error as NodeJS.ErrnoException).code
    }
  }
  throw toSpawnError(Object.assign(new Error('not found'), { code: code === 'EACCES' ? 'EACCES' : 'ENOENT' }), { command, cwd }, env)
}

/** Converts the error of a spawn. */
export function toSpawnError(error: NodeJS.ErrnoException, { command, cwd }: Spawned, env: Record<string, string>): SpawnError {
  const name = JSON.stringify(command)
  // The kernel reports ENOENT for a missing cwd, too.
  if (!statSync(cwd, { throwIfNoEntry: false })?.isDirectory()) {
    return new SpawnError('DirectoryNotFound', command, `working directory ${JSON.stringify(cwd)} of ${name} does not exist`, error)
  }
  if (error.code === 'ENOENT') {
    const where = command.includes('/') ? '' : ` in PATH ${JSON.stringify(env.PATH ?? process.env.PATH ?? '')}`
    return new SpawnError('CommandNotFound', command, `command ${name} was not found${where}`, error)
  }
  if (error.code === 'EACCES') {
    return new SpawnError('CommandNotExecutable', command, `command ${name} is not executable; run chmod +x on it`, error)
  }
  const hint = error.code === 'EMFILE' ? ': the worker has too many open files, raise its limit (ulimit -n)' : ''
  return new SpawnError('SpawnFailed', command, `command ${name} could not be started: ${error.message}${hint}`, error)
}
