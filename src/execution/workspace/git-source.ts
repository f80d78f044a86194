import { existsSync } from 'node:fs'
import { lstat, open, readdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { withCachedCommit } from './git-cache.ts'
import { type Git, withIsolatedGit } from './git-command.ts'
import { gitError } from './git-error.ts'
import { type GitUrl, parseGitUrl, redactUrl, remoteOf } from './git-url.ts'
import { allowedDirectory, escapingSymlinkError } from './path-source.ts'
import { SourceError } from './source-error.ts'
import { type GitSource, maxSourceBytes, maxSourceFiles, type SourceOptions } from './source-options.ts'
import { resolveInside } from './symlinks.ts'
import { temporaryName } from './temporary-name.ts'

/** The commit that the source refers to now. Runs `ls-remote` and fetches nothing. */
export async function gitRevision(source: GitSource, options: SourceOptions): Promise<string> {
  const url = await checkedUrl(source.url, options)
  if (source.commit) return source.commit
  const ref = source.tag ? `refs/tags/${source.tag}` : source.branch ? `refs/heads/${source.branch}` : 'HEAD'
  const field = source.tag ? 'spec.source.git.tag' : source.branch ? 'spec.source.git.branch' : 'spec.source.git.url'
  const what = source.tag ? `tag ${JSON.stringify(source.tag)}` : source.branch ? `branch ${JSON.stringify(source.branch)}` : 'HEAD'
  return withIsolatedGit({ ...options, url }, async git => {
    // The second pattern is the commit of an annotated tag.
    const result = await git(['ls-remote', '--', remoteOf(url), ref, `${ref}^{}`])
    if (result.exitCode !== 0) throw gitError(result, field, redactUrl(source.url), what)
    const found = new Map(result.stdout.map(line => line.split('\t') as [string, string]).map(([commit, name]) => [name, commit]))
    const commit = found.get(`${ref}^{}`) ?? found.get(ref)
    if (!commit) throw new SourceError('SourceNotFound', field, `${what} was not found in ${JSON.stringify(redactUrl(source.url))}`)
    return commit
  })
}

/** Writes the whole repository at exactly that commit, without `.git` and submodules. Returns the source's own directory in it. */
export async function checkoutGit(source: GitSource, commit: string, directory: string, options: SourceOptions): Promise<string> {
  if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commit)) {
    throw new SourceError('InvalidSource', 'spec.source.git', `revision ${JSON.stringify(commit)} is not a full commit hash`)
  }
  const url = await checkedUrl(source.url, options)
  await withIsolatedGit({ ...options, url }, git =>
    withCachedCommit(git, url, source, commit, options, repository => checkOut(git, repository, source, commit, directory, options)),
  )
  await checkSymlinks(directory)
  const subdirectory = (source.directory ?? '').replace(/^\.\/?/, '').replace(/\/$/, '')
  if (!subdirectory) return directory
  const inside = resolveInside(directory, subdirectory)
  const found = inside === undefined ? undefined : await stat(join(directory, inside)).catch(() => undefined)
  if (inside === undefined || !found?.isDirectory()) {
    throw new SourceError(
      'SourceNotFound',
      'spec.source.git.directory',
      `directory ${JSON.stringify(source.directory)} does not exist in commit ${commit}`,
    )
  }
  return join(directory, inside)
}

async function checkOut(git: Git, repository: string, source: GitSource, commit: string, directory: string, options: SourceOptions) {
  const indexFile = await checkedIndex(git, repository, source, commit, options.maxBytes ?? maxSourceBytes)
  const write = await git(
    [`--git-dir=${repository}`, `--work-tree=${directory}`, 'checkout-index', '--all', '--force', `--prefix=${directory}/`],
    { indexFile },
  )
  if (write.exitCode !== 0) {
    throw new SourceError('SourceUnavailable', 'spec.source.git', `commit ${commit} could not be checked out: ${write.stderr.at(-1) ?? ''}`)
  }
}

/**
 * The index of the commit, which is kept with it: of all Runs that need the commit, the first one lists its trees. It exists only if the commit is
 * below the limit.
 * @throws {SourceError} InvalidSource
 */
async function checkedIndex(git: Git, repository: string, source: GitSource, commit: string, maxBytes: number): Promise<string> {
  const indexFile = join(repository, `index-below-${maxBytes}`)
  if (existsSync(indexFile)) return indexFile
  await checkSize(git, repository, commit, maxBytes)
  const temporary = join(repository, temporaryName(globalThis.crypto.randomUUID()))
  try {
    const read = await git([`--git-dir=${repository}`, 'read-tree', commit], { indexFile: temporary })
    if (read.exitCode !== 0) throw gitError(read, 'spec.source.git', redactUrl(source.url), `commit ${commit}`)
    await syncFile(temporary)
    await rename(temporary, indexFile)
    return indexFile
  } finally {
    await rm(temporary, { force: true })
  }
}

/** After a crash of the machine the file is there completely, or not at all. Git does not do that for an index. */
async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

async function checkedUrl(text: string, { allowPaths }: SourceOptions): Promise<GitUrl> {
  const url = parseGitUrl(text)
  const field = 'spec.source.git.url'
  if (url.kind === 'invalid') throw new SourceError('InvalidSource', field, `${JSON.stringify(redactUrl(text))} ${url.reason}`)
  if (url.kind !== 'file') return url
  const path = await allowedDirectory(url.path, allowPaths, field)
  await checkGitDirectory(path, allowPaths)
  // The real path: git reads what was checked, even if a symlink on the way changes afterwards.
  return { ...url, path }
}

/** The `.git` of a work tree may be a symlink or a file that names another directory, which must be allowed, too. */
async function checkGitDirectory(path: string, allowPaths: readonly string[]): Promise<void> {
  const dotGit = join(path, '.git')
  const stats = await lstat(dotGit).catch(() => undefined)
  if (!stats) return
  if (!stats.isFile()) {
    await allowedDirectory(dotGit, allowPaths, 'spec.source.git.url')
    return
  }
  const target = /^gitdir: (.+?)\s*$/.exec(await readFile(dotGit, 'utf8'))?.[1]
  if (target) await allowedDirectory(resolve(path, target), allowPaths, 'spec.source.git.url')
}

/**
 * Adds up the sizes in the commit before anything of it is written: a small pack may contain much, and nested trees endlessly many files.
 * @throws {SourceError} InvalidSource
 */
async function checkSize(git: Git, repository: string, commit: string, maxBytes: number): Promise<void> {
  let entries = 0
  let bytes = 0
  // `<mode> <type> <object> <size>\t<path>`; with the trees, because those without files cost time too.
  const listed = await git([`--git-dir=${repository}`, 'ls-tree', '-r', '-t', '-l', '--full-tree', commit], {
    onLine: line => {
      entries++
      bytes += Number(/^\d+ blob \w+ +(\d+)\t/.exec(line)?.[1] ?? 0)
      return entries <= maxSourceFiles && bytes <= maxBytes
    },
  })
  const tooLarge = (limit: string) => new SourceError('InvalidSource', 'spec.source.git', `the repository has more than ${limit}`)
  if (entries > maxSourceFiles) throw tooLarge(`${maxSourceFiles} files`)
  if (bytes > maxBytes) throw tooLarge(`${maxBytes} bytes`)
  if (listed.exitCode !== 0) throw gitError(listed, 'spec.source.git', repository, `commit ${commit}`)
}

/** @throws {SourceError} when a symlink leaves the tree. */
async function checkSymlinks(root: string): Promise<void> {
  const walk = async (parent: string): Promise<void> => {
    for (const entry of await readdir(join(root, parent), { withFileTypes: true })) {
      const path = parent ? `${parent}/${entry.name}` : entry.name
      if (entry.isDirectory()) await walk(path)
      else if (entry.isSymbolicLink() && resolveInside(root, path) === undefined)
        throw escapingSymlinkError('spec.source.git', path, await readlink(join(root, path)))
    }
  }
  await walk('')
}
