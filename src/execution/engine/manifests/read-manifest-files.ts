import { join } from 'node:path'
import { UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import type { EngineContext } from '../engine.ts'
import { EngineError } from '../engine-error.ts'

const maxFiles = 5_000
const maxFileBytes = 16 * 1024 * 1024

/** Every `*.yaml`, `*.yml` and `*.json` file of the source, with its relative path. Skips hidden files, hidden directories and symlinks. */
export async function readManifestFiles({
  files,
  directory: root,
}: Pick<EngineContext, 'files' | 'directory'>): Promise<{ path: string; text: string }[]> {
  const paths: string[] = []
  const visit = async (directory: string): Promise<void> => {
    for (const { name, kind } of await files.list(join(root, directory))) {
      if (name.startsWith('.')) continue
      const path = join(directory, name)
      if (kind === 'directory') await visit(path)
      else if (kind === 'file' && /\.(ya?ml|json)$/.test(name)) paths.push(path)
    }
  }
  await visit('')
  // An empty source would prune every object of the Stack, which is more likely a mistake than intended.
  if (paths.length === 0) throw invalid('the source has no *.yaml, *.yml or *.json file; to delete everything, delete the Stack')
  if (paths.length > maxFiles) throw invalid(`the source has ${paths.length} manifest files; at most ${maxFiles} are allowed`)
  const found: { path: string; text: string }[] = []
  for (const path of paths.sort()) {
    const text = await files.readText(join(root, path), { maxBytes: maxFileBytes }).catch(error => {
      if (error instanceof UnexpectedFileError) throw invalid(`${path} ${error.problem}`)
      throw error
    })
    found.push({ path, text: text ?? '' })
  }
  return found
}

function invalid(message: string): EngineError {
  return new EngineError('InvalidConfiguration', message, { retryable: false })
}
