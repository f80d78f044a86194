import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EngineError } from '../engine-error.ts'

const maxFiles = 5_000
const maxFileBytes = 16 * 1024 * 1024

/** Every `*.yaml`, `*.yml` and `*.json` file below `root`, with its relative path. Skips hidden files, hidden directories and symlinks. */
export async function readManifestFiles(root: string): Promise<{ path: string; text: string }[]> {
  const paths: string[] = []
  const visit = async (directory: string): Promise<void> => {
    for (const entry of await readdir(join(root, directory), { withFileTypes: true })) {
      if (entry.name.startsWith('.')) continue
      const path = join(directory, entry.name)
      if (entry.isDirectory()) await visit(path)
      else if (entry.isFile() && /\.(ya?ml|json)$/.test(entry.name)) paths.push(path)
    }
  }
  await visit('')
  // An empty source would prune every object of the Stack, which is more likely a mistake than intended.
  if (paths.length === 0) throw invalid('the source has no *.yaml, *.yml or *.json file; to delete everything, delete the Stack')
  if (paths.length > maxFiles) throw invalid(`the source has ${paths.length} manifest files; at most ${maxFiles} are allowed`)
  return await Promise.all(
    paths.sort().map(async path => {
      const { size } = await stat(join(root, path))
      if (size > maxFileBytes) throw invalid(`${path} has ${size} bytes; at most ${maxFileBytes} are allowed`)
      return { path, text: await readFile(join(root, path), 'utf8') }
    }),
  )
}

function invalid(message: string): EngineError {
  return new EngineError('InvalidConfiguration', message, { retryable: false })
}
