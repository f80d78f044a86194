import { constants } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readdir, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ifMissing } from './if-missing.ts'

/** An entry is not what was expected: a symlink, a pipe, a device, or a file that is too large. */
export class UnexpectedFileError extends Error {
  override readonly name = 'UnexpectedFileError'
  /** The message without the path. */
  readonly problem: string

  constructor(path: string, problem: string) {
    super(`${path} ${problem}`)
    this.problem = problem
  }
}

export type EntryKind = 'file' | 'directory' | 'symlink' | 'other'
export type DirectoryEntry = { name: string; kind: EntryKind }

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants
/** Linux resolves paths below an open directory; elsewhere the components are checked before the path is used, which a racing program could defeat. */
const hasDescriptorPaths = process.platform === 'linux'
const maxPieceBytes = 1 << 20

type PieceOptions = { readonly maxBytes: number; readonly start?: number; readonly truncate?: boolean }

/**
 * Accesses files below a directory in which an untrusted program can write, such as the directory of a Run. It follows no symlink in any
 * component below the root (the root itself may be reached through symlinks), opens regular files only and never blocks on a pipe, and
 * what it reads is bounded. A file is replaced, never written through. As Go's `os.Root`.
 * Paths are absolute, or relative to the root.
 * @throws {UnexpectedFileError} for a symlink, a pipe, a device, or content above the limit; {RangeError} for a path outside of the root;
 * otherwise an error with the `code` of the system call and the path.
 */
export class RootDirectory {
  readonly root: string

  constructor(root: string) {
    this.root = root
  }

  /** The content of a regular file; undefined if it does not exist. */
  async read(path: string, options: { maxBytes: number }): Promise<Buffer | undefined> {
    const pieces: Buffer[] = []
    const found = await this.readPieces(path, options, piece => void pieces.push(Buffer.from(piece)))
    return found ? Buffer.concat(pieces) : undefined
  }

  /** As `read`, as text. */
  async readText(path: string, options: { maxBytes: number }): Promise<string | undefined> {
    return (await this.read(path, options))?.toString('utf8')
  }

  /**
   * Passes the content of a regular file from byte `start` (default 0) in pieces, each valid until the call returns. False if it does not exist.
   * More than `maxBytes` is an error, or not read if `truncate` is true.
   */
  async readPieces(path: string, options: PieceOptions, onPiece: (piece: Buffer) => void): Promise<boolean> {
    const { maxBytes, start = 0, truncate = false } = options
    const file = await this.#withParent(path, (directory, name) => openRegular(join(directory, name), path)).catch(ifMissing(undefined))
    if (!file) return false
    try {
      const { size } = await file.stat()
      if (!truncate && size - start > maxBytes) throw tooLarge(path, size, maxBytes)
      const piece = Buffer.allocUnsafe(Math.min(size + 1, maxPieceBytes))
      // It may grow while it is read.
      for (let total = 0; ; ) {
        const length = truncate ? Math.min(piece.byteLength, maxBytes - total) : piece.byteLength
        if (length === 0) return true
        const { bytesRead } = await file.read(piece, 0, length, start + total)
        if (bytesRead === 0) return true
        total += bytesRead
        if (total > maxBytes) throw tooLarge(path, total, maxBytes)
        onPiece(piece.subarray(0, bytesRead))
      }
    } finally {
      await file.close()
    }
  }

  /** Replaces whatever is at `path` by a new regular file; a directory there is an error. */
  async write(path: string, data: string | Uint8Array, mode = 0o600): Promise<void> {
    await this.#withParent(path, async (directory, name) => {
      const temporary = join(directory, `.${name.slice(0, 200)}.${process.pid}-${Math.random().toString(36).slice(2)}`)
      const file = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode)
      try {
        await file.writeFile(data).finally(() => file.close())
        await rename(temporary, join(directory, name))
      } catch (error) {
        await unlink(temporary).catch(() => {})
        throw error
      }
    })
  }

  /** Removes a file, a symlink or a pipe. Nothing happens if there is none. */
  async remove(path: string): Promise<void> {
    await this.#withParent(path, (directory, name) => unlink(join(directory, name))).catch(ifMissing(undefined))
  }

  /** The entries of a directory, sorted by name; empty if it does not exist. */
  async list(path = ''): Promise<DirectoryEntry[]> {
    const read = (directory: string) => readdir(directory, { withFileTypes: true })
    const entries = await this.#withDirectory(this.#componentsOf(path), read).catch(ifMissing([]))
    const found = entries.map(entry => ({ name: entry.name, kind: kindOf(entry) }))
    return found.sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async kindOf(path: string): Promise<EntryKind | undefined> {
    const stats = await this.#withParent(path, (directory, name) => lstat(join(directory, name))).catch(ifMissing(undefined))
    return stats && kindOf(stats)
  }

  async isExecutable(path: string): Promise<boolean> {
    return await this.#withParent(path, async (directory, name) => ((await lstat(join(directory, name))).mode & 0o111) !== 0)
  }

  async readLink(path: string): Promise<string> {
    return await this.#withParent(path, (directory, name) => readlink(join(directory, name)))
  }

  async createLink(path: string, target: string): Promise<void> {
    await this.#withParent(path, (directory, name) => symlink(target, join(directory, name)))
  }

  /** Creates a directory and its missing ancestors below the root. */
  async makeDirectory(path: string, mode = 0o700): Promise<void> {
    const components = this.#componentsOf(path)
    for (const [at, name] of components.entries()) {
      await this.#withDirectory(components.slice(0, at), directory => mkdir(join(directory, name), { mode })).catch(error => {
        if (codeOf(error) !== 'EEXIST') throw error
      })
    }
    await this.#withDirectory(components, async () => {})
  }

  /** Renames an entry, also into another root on the same file system. Returns false if a non-empty directory is there already, or it is on another file system. */
  async move(path: string, to: RootDirectory, toPath: string): Promise<boolean> {
    try {
      await this.#withParent(path, (from, name) =>
        to.#withParent(toPath, (directory, toName) => rename(join(from, name), join(directory, toName))),
      )
      return true
    } catch (error) {
      if (['ENOTEMPTY', 'EEXIST', 'EXDEV', 'ENOTDIR'].includes(codeOf(error) ?? '')) return false
      throw error
    }
  }

  #componentsOf(path: string): string[] {
    const below = path.startsWith(sep) ? relative(this.root, path) : path
    const components = below === '' ? [] : below.split(sep)
    if (components.some(name => name === '' || name === '.' || name === '..' || name.includes('\0')))
      throw new RangeError(`path must be below ${this.root}, got ${JSON.stringify(path)}`)
    return components
  }

  async #withParent<T>(path: string, work: (directory: string, name: string) => Promise<T>): Promise<T> {
    const components = this.#componentsOf(path)
    const name = components.pop()
    if (name === undefined) throw new RangeError(`path must be below ${this.root}, got the directory itself`)
    return await this.#withDirectory(components, async directory => {
      try {
        return await work(directory, name)
      } catch (error) {
        throw named(error, join(this.root, ...components, name))
      }
    })
  }

  /** Calls `work` with a path of the directory that leads through no symlink, whatever is renamed meanwhile. */
  async #withDirectory<T>(components: readonly string[], work: (directory: string) => Promise<T>): Promise<T> {
    if (!hasDescriptorPaths) return await work(await this.#checkedDirectory(components))
    let directory: FileHandle | undefined = await open(this.root, O_RDONLY | O_DIRECTORY)
    try {
      for (const [at, name] of components.entries()) {
        const next: FileHandle = await openDirectory(
          `/proc/self/fd/${directory.fd}/${name}`,
          join(this.root, ...components.slice(0, at + 1)),
        )
        const previous = directory
        directory = next
        await previous.close()
      }
      return await work(`/proc/self/fd/${directory.fd}`)
    } finally {
      await directory.close()
    }
  }

  async #checkedDirectory(components: readonly string[]): Promise<string> {
    let path = this.root
    for (const name of components) {
      path = join(path, name)
      if (!(await lstat(path)).isDirectory()) throw new UnexpectedFileError(path, 'is not a directory')
    }
    return path
  }
}

async function openDirectory(path: string, shown: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  } catch (error) {
    if (codeOf(error) === 'ELOOP' || codeOf(error) === 'ENOTDIR') throw new UnexpectedFileError(shown, 'is not a directory')
    throw named(error, shown)
  }
}

async function openRegular(path: string, shown: string): Promise<FileHandle> {
  let file: FileHandle
  try {
    // O_NONBLOCK: neither a pipe without a writer nor a lease on the file blocks this thread.
    file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    // ENXIO: a socket.
    if (['ELOOP', 'ENXIO'].includes(codeOf(error) ?? '')) throw new UnexpectedFileError(shown, 'is not a regular file')
    throw error
  }
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new UnexpectedFileError(shown, 'is not a regular file')
}

const tooLarge = (path: string, size: number, maxBytes: number): UnexpectedFileError =>
  new UnexpectedFileError(path, `has ${size} bytes; at most ${maxBytes} are allowed`)

function kindOf(entry: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): EntryKind {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'directory'
  return entry.isSymbolicLink() ? 'symlink' : 'other'
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code

/** The error of a system call names the descriptor; this one names the path. */
function named(error: unknown, path: string): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  if (code === undefined || !(error as Error).message.includes('/proc/self/fd/')) return error
  return Object.assign(new Error(`${code}: ${syscall ?? 'access'} ${path}`, { cause: error }), { code })
}
