import { join } from 'node:path'
import { type RootDirectory, UnexpectedFileError } from '../../kubernetes/util/index.ts'

/** A file or symlink of a source. `content` is base64. */
export type ArchivedEntry = { readonly path: string; readonly content?: string; readonly isProgram?: boolean; readonly link?: string }

/** Total size of the files of an archive: 8 MiB. A source with more, or with more files than {@link maxArchiveEntries}, is not archived. */
export const maxArchiveBytes = 8 * 1024 ** 2
const maxArchiveEntries = 2_000

const ifTooLarge = (error: unknown): undefined => {
  if (!(error instanceof UnexpectedFileError)) throw error
}

/** The files below `root`, without `.git`; undefined if they are too large. No engine may have run there: what it writes is no source. */
export async function archiveSource(files: RootDirectory, root: string): Promise<ArchivedEntry[] | undefined> {
  const entries: ArchivedEntry[] = []
  let remainingBytes = maxArchiveBytes
  /** False if it is too large. */
  const visit = async (directory: string): Promise<boolean> => {
    for (const { name, kind } of await files.list(join(root, directory))) {
      const path = join(directory, name)
      const absolute = join(root, path)
      if (entries.length >= maxArchiveEntries) return false
      if (kind === 'directory') {
        if (name !== '.git' && !(await visit(path))) return false
      } else if (kind === 'symlink') entries.push({ path, link: await files.readLink(absolute) })
      else if (kind === 'file') {
        const content = await files.read(absolute, { maxBytes: remainingBytes }).catch(ifTooLarge)
        if (!content) return false
        remainingBytes -= content.byteLength
        const isProgram = await files.isExecutable(absolute)
        entries.push({ path, content: content.toString('base64'), ...(isProgram && { isProgram }) })
      }
    }
    return true
  }
  return (await visit('')) ? entries : undefined
}

/** Writes an archive into the empty directory `root`. */
export async function writeArchive(files: RootDirectory, root: string, entries: readonly ArchivedEntry[]): Promise<void> {
  // Symlinks last: no file is written through one.
  for (const { path, content, isProgram } of entries) {
    if (content === undefined) continue
    await files.makeDirectory(join(root, path, '..'), 0o755)
    await files.write(join(root, path), Buffer.from(content, 'base64'), isProgram ? 0o755 : 0o644)
  }
  for (const { path, link } of entries) {
    if (link === undefined) continue
    await files.makeDirectory(join(root, path, '..'), 0o755)
    await files.createLink(join(root, path), link)
  }
}
