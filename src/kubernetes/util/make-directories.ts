import { mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Creates a directory and its missing ancestors, like `mkdir -p`. `mkdirSync` with `recursive` never returns where the kernel rejects a
 * new directory with ENOENT, as in /proc (Node 26).
 * @throws the error of `mkdir` or `stat`, such as ENOENT, EACCES or ENOTDIR.
 * @returns the directories it created, the outermost first.
 */
export function makeDirectories(path: string, mode = 0o777): string[] {
  const missing: string[] = []
  let current = resolve(path)
  for (; !isDirectory(current); current = dirname(current)) missing.push(current)
  const created: string[] = []
  for (const directory of missing.reverse()) {
    try {
      mkdirSync(directory, { mode })
      created.push(directory)
    } catch (error) {
      // Another process may have created it meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || !isDirectory(directory)) throw error
    }
  }
  return created
}

function isDirectory(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats || stats.isDirectory()) return stats !== undefined
  throw Object.assign(new Error(`ENOTDIR: ${path} is not a directory`), { code: 'ENOTDIR', path })
}
