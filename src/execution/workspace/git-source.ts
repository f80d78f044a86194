import { lstat, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { cachedCommit } from './git-cache.ts'
import { withIsolatedGit } from './git-command.ts'
import { gitError } from './git-error.ts'
import { type GitUrl, parseGitUrl, redactUrl, remoteOf } from './git-url.ts'
import { allowedDirectory, escapingSymlinkError } from './path-source.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import { type GitSource, maxSourceBytes, maxSourceFiles, type SourceOptions } from './source-options.ts'
import { resolveInside } from './symlinks.ts'

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
  await withIsolatedGit({ ...options, url }, async git => {
    const repository = await cachedCommit(git, url, source, commit, options)
    const indexFile = `${directory}.index-${process.pid}`
    try {
      const read = await git([`--git-dir=${repository}`, 'read-tree', commit], { indexFile })
      if (read.exitCode !== 0) throw gitError(read, 'spec.source.git', redactUrl(source.url), `commit ${commit}`)
      const write = await git(
        [`--git-dir=${repository}`, `--work-tree=${directory}`, 'checkout-index', '--all', '--force', `--prefix=${directory}/`],
        { indexFile },
      )
      if (write.exitCode !== 0) {
        throw new SourceError(
          'SourceUnavailable',
          'spec.source.git',
          `commit ${commit} could not be checked out: ${write.stderr.at(-1) ?? ''}`,
        )
      }
    } finally {
      await removeTree(indexFile)
    }
  })
  await checkTree(directory)
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

/** @throws {SourceError} when the tree is too large or a symlink leaves it. */
async function checkTree(root: string): Promise<void> {
  let files = 0
  let bytes = 0
  const walk = async (parent: string): Promise<void> => {
    for (const entry of await readdir(join(root, parent), { withFileTypes: true })) {
      const path = parent ? `${parent}/${entry.name}` : entry.name
      if (++files > maxSourceFiles)
        throw new SourceError('InvalidSource', 'spec.source.git', `the repository has more than ${maxSourceFiles} files`)
      if (entry.isDirectory()) await walk(path)
      else if (entry.isSymbolicLink()) {
        if (resolveInside(root, path) === undefined) throw escapingSymlinkError('spec.source.git', path, await readlink(join(root, path)))
      } else bytes += (await lstat(join(root, path))).size
      if (bytes > maxSourceBytes)
        throw new SourceError('InvalidSource', 'spec.source.git', `the repository has more than ${maxSourceBytes} bytes`)
    }
  }
  await walk('')
}
