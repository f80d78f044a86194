import { matchesGlob } from 'node:path'
import { joinPath, type SourceFiles } from './source-files.ts'

const maxDirectories = 20_000

/**
 * Directories of a workspace: those that match one of `patterns`, as npm, pnpm, yarn and uv write them (`packages/*`, `apps/**`, `!apps/old`),
 * relative to `root`. Sorted.
 */
export async function expandGlobs(source: SourceFiles, root: string, patterns: readonly string[]): Promise<string[]> {
  const found = new Set<string>()
  let visited = 0
  const expand = async (directory: string, segments: readonly string[]): Promise<void> => {
    if (++visited > maxDirectories) return
    const [segment, ...rest] = segments
    if (segment === undefined) {
      found.add(directory)
      return
    }
    if (segment === '..' || segment === '.') return
    if (segment === '**') {
      await expand(directory, rest)
      for (const name of await source.directories(directory)) await expand(joinPath(directory, name), segments)
      return
    }
    if (!/[*?[\]{}]/.test(segment)) {
      if (await source.isDirectory(joinPath(directory, segment))) await expand(joinPath(directory, segment), rest)
      return
    }
    for (const name of await source.directories(directory))
      if (!name.startsWith('.') && matchesGlob(name, segment)) await expand(joinPath(directory, name), rest)
  }
  const split = (pattern: string) => pattern.split('/').filter(part => part !== '' && part !== '.')
  for (const pattern of patterns) if (!pattern.startsWith('!')) await expand(root, split(pattern))
  const below = (path: string) => (root === '' ? path : path.slice(root.length + 1))
  const excluded = patterns.filter(pattern => pattern.startsWith('!')).map(pattern => split(pattern.slice(1)).join('/'))
  return [...found].filter(path => path !== root && !excluded.some(pattern => matchesGlob(below(path), pattern))).sort()
}
