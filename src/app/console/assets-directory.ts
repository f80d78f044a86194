import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { sourceDirectory } from '../../kubernetes/util/index.ts'

/** Where the page is: in a package beside its sources, in a checkout where `scripts/ensure-installed.mjs` has built it. */
export function consoleAssetsDirectory(): string {
  const cache = join(dirname(sourceDirectory), 'node_modules', '.cache', 'oarlock')
  try {
    const { directory } = JSON.parse(readFileSync(join(cache, 'console.json'), 'utf8')) as { directory: string }
    return join(cache, directory)
  } catch {
    return join(sourceDirectory, 'console')
  }
}
