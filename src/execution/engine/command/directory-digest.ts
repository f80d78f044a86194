import { readdir, readFile, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { createSha256 } from '../../../kubernetes/util/index.ts'

/** `sha256:<hex>` of the paths and contents below `root`, without `.git`. */
export async function directoryDigest(root: string): Promise<string> {
  const hash = createSha256()
  const visit = async (directory: string): Promise<void> => {
    const entries = await readdir(join(root, directory), { withFileTypes: true })
    entries.sort((a, b) => (a.name < b.name ? -1 : 1))
    for (const entry of entries) {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) {
        if (entry.name !== '.git') await visit(path)
      } else if (entry.isSymbolicLink()) hash.update(`link ${path}\0${await readlink(join(root, path))}\0`)
      else if (entry.isFile()) {
        const content = await readFile(join(root, path))
        hash.update(`file ${path}\0${content.length}\0`).update(content)
      }
    }
  }
  await visit('')
  return `sha256:${hash.digest('hex')}`
}
