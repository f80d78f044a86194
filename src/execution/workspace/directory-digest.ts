import { join } from 'node:path'
import { createSha256, type RootDirectory } from '../../kubernetes/util/index.ts'

/** As a source has at most. */
const maxFileBytes = 1024 ** 3

/** `sha256:<hex>` of the paths, contents and executable bits below `root`, without `.git`. */
export async function directoryDigest(files: RootDirectory, root: string): Promise<string> {
  const hash = createSha256()
  const visit = async (directory: string): Promise<void> => {
    for (const { name, kind } of await files.list(join(root, directory))) {
      const path = join(directory, name)
      if (kind === 'directory') {
        if (name !== '.git') await visit(path)
      } else if (kind === 'symlink') hash.update(`link ${path}\0${await files.readLink(join(root, path))}\0`)
      else if (kind === 'file') {
        const content = createSha256()
        await files.readPieces(join(root, path), { maxBytes: maxFileBytes }, piece => void content.update(piece))
        const kindOfFile = (await files.isExecutable(join(root, path))) ? 'program' : 'file'
        hash.update(`${kindOfFile} ${path}\0${content.digest('hex')}\0`)
      }
    }
  }
  await visit('')
  return `sha256:${hash.digest('hex')}`
}
