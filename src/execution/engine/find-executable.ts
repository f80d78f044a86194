import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, isAbsolute, join } from 'node:path'

/** `reasons`: why nothing was found. */
export type ExecutableLookup = { path: string | undefined; reasons: string[] }

/**
 * Looks for `name` at the path in the environment variable `overrideName`, or else on PATH.
 * When the override is not an executable file, PATH is not searched instead: a person chose that file.
 */
export async function findExecutable(
  name: string,
  overrideName: string,
  env: Record<string, string | undefined>,
): Promise<ExecutableLookup> {
  const override = env[overrideName]
  if (override) {
    const reasons = [`${overrideName}=${override} is not an executable file`]
    return { path: isAbsolute(override) && (await isExecutable(override)) ? override : undefined, reasons }
  }
  const directories = (env.PATH ?? '').split(delimiter).filter(isAbsolute)
  for (const directory of directories) {
    const path = join(directory, name)
    if (await isExecutable(path)) return { path, reasons: [] }
  }
  return { path: undefined, reasons: [`${name} is not on the PATH`, `${overrideName} is not set`] }
}

async function isExecutable(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

/** Changes when the file, or the target of a symlink there, is replaced. Empty when there is no file. */
export async function fileIdentity(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs } = await stat(path)
    return [dev, ino, size, mtimeMs].join(':')
  } catch {
    return ''
  }
}

/** The stdout of a short command. Rejects when it cannot start, fails, or takes longer than 20 s. */
export function captureStdout(path: string, args: string[], env: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(path, args, { env, timeout: 20_000, maxBuffer: 1 << 20 }, (error, stdout) => (error ? reject(error) : resolve(stdout)))
  })
}
