import { join } from 'node:path'
import { createSha256, type RootDirectory } from '../../kubernetes/util/index.ts'
import { resolveInside } from '../workspace/index.ts'
import { DependencyError } from './dependency-error.ts'

const maxTextBytes = 64 * 1024 ** 2
/** As a source has at most. */
const maxFileBytes = 1024 ** 3
const maxFiles = 100_000

/** What an install or an earlier one creates: never an input. */
export const installedNames: ReadonlySet<string> = new Set(['node_modules', '.git', '.venv', '__pycache__', '.pnp.cjs', '.pnp.loader.mjs'])

/**
 * The source of a Run, read as an install reads it: symlinks are followed, but only inside of the source. Paths are relative to its root, with
 * slashes and without `..`; the root is `''`.
 */
export class SourceFiles {
  readonly root: string
  /** All files of the Run. */
  readonly files: RootDirectory
  readonly #digests = new Map<string, Promise<string | undefined>>()

  /** `root` is an absolute path below the root of `files`. */
  constructor(files: RootDirectory, root: string) {
    this.files = files
    this.root = root
  }

  /** The content of a file; undefined if there is none. */
  async text(path: string): Promise<string | undefined> {
    if ((await this.#kindOf(path)) !== 'file') return undefined
    return await this.files.readText(this.#resolve(path), { maxBytes: maxTextBytes })
  }

  async exists(path: string): Promise<boolean> {
    return (await this.#kindOf(path)) !== undefined
  }

  async isDirectory(path: string): Promise<boolean> {
    return path === '' || (await this.#kindOf(path)) === 'directory'
  }

  /** The names of the directories in a directory. */
  async directories(path: string): Promise<string[]> {
    const entries = await this.files.list(this.#resolve(path))
    const names: string[] = []
    for (const { name, kind } of entries) {
      const isDirectory = kind === 'directory' || (kind === 'symlink' && (await this.isDirectory(joinPath(path, name))))
      if (isDirectory && !installedNames.has(name)) names.push(name)
    }
    return names
  }

  /** `sha256:<hex>` of a file, or of everything in a directory except {@link installedNames}; undefined if there is neither. */
  digest(path: string): Promise<string | undefined> {
    const known = this.#digests.get(path) ?? this.#digestOf(path)
    this.#digests.set(path, known)
    return known
  }

  /**
   * The path that `target` leads to from the directory `from`.
   * @throws {DependencyError} if that is outside of the source: it is not there in a Run.
   */
  resolve(from: string, target: string, what: string): string {
    const parts: string[] = from === '' ? [] : from.split('/')
    const isOutside = () =>
      new DependencyError('InvalidConfiguration', `${what} leads to ${target}, which is outside of the source`, { retryable: false })
    if (target.startsWith('/')) throw isOutside()
    for (const part of target.split('/')) {
      if (part === '' || part === '.') continue
      if (part !== '..') parts.push(part)
      else if (parts.pop() === undefined) throw isOutside()
    }
    return parts.join('/')
  }

  async #digestOf(path: string): Promise<string | undefined> {
    const kind = path === '' ? 'directory' : await this.#kindOf(path)
    if (kind === undefined) return undefined
    const hash = createSha256()
    if (kind === 'file') await this.#hashFile(path, hash)
    else {
      let count = 0
      const visit = async (directory: string, below: string): Promise<void> => {
        for (const entry of await this.files.list(this.#resolve(directory))) {
          if (installedNames.has(entry.name)) continue
          if (++count > maxFiles) throw tooMany(path)
          const name = joinPath(below, entry.name)
          const child = joinPath(directory, entry.name)
          if (entry.kind === 'directory') await visit(child, name)
          else if (entry.kind === 'symlink')
            hash.update(
              `${JSON.stringify(name)} link ${JSON.stringify(await this.files.readLink(join(this.root, this.#resolved(directory), entry.name)))}\n`,
            )
          else if (entry.kind === 'file') {
            const content = createSha256()
            await this.#hashFile(child, content)
            const isExecutable = await this.files.isExecutable(this.#resolve(child))
            hash.update(`${JSON.stringify(name)} ${isExecutable ? 'program' : 'file'} ${content.digest('hex')}\n`)
          }
        }
      }
      await visit(path, '')
    }
    return `sha256:${hash.digest('hex')}`
  }

  async #hashFile(path: string, hash: ReturnType<typeof createSha256>): Promise<void> {
    await this.files.readPieces(this.#resolve(path), { maxBytes: maxFileBytes }, piece => void hash.update(piece))
  }

  async #kindOf(path: string) {
    if (path === '') return 'directory'
    return await this.files.kindOf(this.#resolve(path)).catch(error => {
      if (['ENOENT', 'ENOTDIR'].includes(error.code) || error.name === 'UnexpectedFileError') return undefined
      throw error
    })
  }

  #resolve(path: string): string {
    return join(this.root, this.#resolved(path))
  }

  /** A symlink that leads out of the source has been rejected when it was fetched. */
  #resolved(path: string): string {
    const resolved = resolveInside(this.root, path)
    if (resolved === undefined)
      throw new DependencyError('InvalidConfiguration', `${path} is a symlink that leads out of the source`, { retryable: false })
    return resolved
  }
}

const tooMany = (path: string) =>
  new DependencyError(
    'InvalidConfiguration',
    `the local dependency ${path === '' ? 'in the root of the source' : path} has more than ${maxFiles} files`,
    { retryable: false },
  )

/** Joins paths of a source. */
export const joinPath = (directory: string, name: string): string =>
  directory === '' ? name : name === '' ? directory : `${directory}/${name}`

/** The directory and those above it, up to the root of the source. */
export function ancestorsOf(directory: string): string[] {
  const parts = directory === '' ? [] : directory.split('/')
  return Array.from({ length: parts.length + 1 }, (_, up) => parts.slice(0, parts.length - up).join('/'))
}
