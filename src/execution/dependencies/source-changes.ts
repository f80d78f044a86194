import { basename, join } from 'node:path'
import { walkTree } from '../workspace/index.ts'

const maxProduced = 20_000

/** The files of a source, without those of packages; for {@link producedFiles}. */
export async function listSource(sourceRoot: string, without: readonly string[], signal: AbortSignal): Promise<Set<string>> {
  const found = new Set<string>()
  await walkTree(sourceRoot, {
    signal,
    enters: entry => isSource(entry.path, without),
    visit: ({ path, stats }) => {
      if (stats.isFile()) found.add(path)
    },
  })
  return found
}

/** The directories named `node_modules` in a source, the outermost ones. */
export async function findModuleDirectories(sourceRoot: string, signal: AbortSignal): Promise<string[]> {
  const found: string[] = []
  await walkTree(sourceRoot, {
    signal,
    enters: ({ path }) => isSource(path, []),
    visit: ({ path, stats }) => {
      if (stats.isDirectory() && basename(path) === 'node_modules') found.push(path)
    },
  })
  return found
}

/** Files that an install has created in the source: `before` is what {@link listSource} has returned before it. */
export async function producedFiles(
  sourceRoot: string,
  before: ReadonlySet<string>,
  without: readonly string[],
  signal: AbortSignal,
): Promise<{ name: string; path: string }[]> {
  const produced: { name: string; path: string }[] = []
  for (const name of await listSource(sourceRoot, without, signal))
    if (!before.has(name)) produced.push({ name, path: join(sourceRoot, name) })
  return produced.slice(0, maxProduced)
}

const isSource = (path: string, without: readonly string[]): boolean =>
  !['node_modules', '.git'].includes(basename(path)) && !without.includes(path)
