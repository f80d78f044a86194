import { realpathSync } from 'node:fs'
import { delimiter } from 'node:path'

/**
 * Why OARLOCK_SANDBOX_BINDS cannot be used: sandboxes see its paths read-only, also the directories of Runs and the caches of all trust domains
 * if these are below one of them. Undefined if it can.
 */
export function sandboxBindsError(
  env: Readonly<Record<string, string | undefined>>,
  directories: Readonly<Record<string, string>>,
): string | undefined {
  for (const bind of (env.OARLOCK_SANDBOX_BINDS ?? '').split(delimiter).filter(Boolean)) {
    const shown = `${realPath(bind)}/`.replace('//', '/')
    const hidden = Object.entries(directories).find(([, path]) => `${realPath(path)}/`.startsWith(shown))
    if (hidden)
      return `OARLOCK_SANDBOX_BINDS contains ${JSON.stringify(bind)}, which has ${hidden[0]} ${hidden[1]} in it; name only the paths that programs of Runs need, or use another ${hidden[0]}`
  }
  return undefined
}

/** The path itself if it does not exist, or cannot be read. */
function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
