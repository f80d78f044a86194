import { createSha256, type RootDirectory, UnexpectedFileError } from '../../kubernetes/util/index.ts'

/**
 * What trees may have at most, together those that get the same object: reading reduces it. Directories count as files. `signal` ends the
 * reading: a tree may be on a slow disk, or change all the time.
 */
export type TreeBudget = { bytes: number; files: number; signal?: AbortSignal }

/** Each level takes a system call for each entry below it. Packages have two. */
const maxDepth = 20

/** Receives the content of one file, in pieces that are valid until the call returns. */
export type FileSink = { write(piece: Uint8Array): void; close(): Promise<void> }

/**
 * `h1:<base64>`, as Go's `dirhash.Hash1` computes it for the files below `root`, and lock files of Terraform name it. It covers names and
 * contents: no modes, no times, no empty directories. With `open`, the bytes that it covers are exactly those that the sinks received, whatever
 * changes meanwhile.
 * @throws {UnexpectedFileError} for a tree without files, with anything but files and directories, nested too deep, or beyond the budget.
 * @throws the reason of `budget.signal`.
 */
export async function h1Digest(
  files: RootDirectory,
  root: string,
  budget: TreeBudget,
  open?: (name: string) => Promise<FileSink>,
): Promise<string> {
  const pathOf = (name: string) => [root, name].filter(part => part !== '').join('/')
  const digests: { name: Buffer; line: string }[] = []
  const add = async (name: string): Promise<void> => {
    const content = createSha256()
    const sink = await open?.(name)
    try {
      const found = await files.readPieces(pathOf(name), { maxBytes: budget.bytes }, piece => {
        budget.signal?.throwIfAborted()
        budget.bytes -= piece.byteLength
        content.update(piece)
        sink?.write(piece)
      })
      if (!found) throw new UnexpectedFileError(pathOf(name), 'was removed while it was read')
    } finally {
      await sink?.close()
    }
    digests.push({ name: Buffer.from(name), line: `${content.digest('hex')}  ${name}\n` })
  }
  const { files: maxFiles } = budget
  const visit = async (directory: string, depth: number): Promise<void> => {
    if (depth > maxDepth) throw new UnexpectedFileError(root, `has directories nested more than ${maxDepth} levels deep`)
    for (const { name, kind } of await files.list(pathOf(directory))) {
      const path = directory === '' ? name : `${directory}/${name}`
      budget.signal?.throwIfAborted()
      if (--budget.files < 0) throw new UnexpectedFileError(root, `has more than ${maxFiles} files and directories`)
      if (kind === 'directory') await visit(path, depth + 1)
      else if (kind === 'file' && !name.includes('\n')) await add(path)
      else throw new UnexpectedFileError(pathOf(path), 'is not a regular file')
    }
  }
  await visit('', 0)
  if (digests.length === 0) throw new UnexpectedFileError(root, 'has no files')
  // Go sorts names by their bytes.
  digests.sort((a, b) => Buffer.compare(a.name, b.name))
  const all = createSha256()
  for (const { line } of digests) all.update(line)
  return `h1:${all.digest('base64')}`
}
