import { createHash } from 'node:crypto'
import { cp, link, lstat, mkdir, readdir, readFile, readlink, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type Git, gitError, withGit } from './git-command.ts'
import { type GitUrl, parseGitUrl, redactUrl } from './git-url.ts'
import { allowedDirectory, outsideLink } from './path-source.ts'
import { readStartTime } from './process/index.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import { type GitSource, maxSourceBytes, maxSourceFiles, type SourceOptions } from './source-options.ts'
import { resolveInside } from './symlinks.ts'

/** Commits kept per repository, and repositories kept in all; the least recently used go first (invariant 10). */
const keptCommits = 4
const keptRepositories = 64
/** A repository grown from its predecessor has the packs of both; after so many it starts anew. */
const maxPacks = 20
const lockPollMs = 50
/** Waiting for another process that fetches the same commit is worth so long, then we fetch it ourselves. */
const lockWaitMs = 120_000

/** Asks the repository which commit the source means now. Fetches nothing. */
export async function gitRevision(source: GitSource, options: SourceOptions): Promise<string> {
  const url = await checkedUrl(source.url, options)
  if (source.commit) return source.commit
  const ref = source.tag ? `refs/tags/${source.tag}` : source.branch ? `refs/heads/${source.branch}` : 'HEAD'
  const field = source.tag ? 'spec.source.git.tag' : source.branch ? 'spec.source.git.branch' : 'spec.source.git.url'
  const what = source.tag ? `tag ${JSON.stringify(source.tag)}` : source.branch ? `branch ${JSON.stringify(source.branch)}` : 'HEAD'
  return withGit({ ...options, url }, async git => {
    // The second pattern is the commit behind an annotated tag.
    const result = await git(['ls-remote', '--', remoteOf(url), ref, `${ref}^{}`])
    if (result.exitCode !== 0) throw gitError(result, field, redactUrl(source.url), what)
    const found = new Map(result.stdout.map(line => line.split('\t') as [string, string]).map(([commit, name]) => [name, commit]))
    const commit = found.get(`${ref}^{}`) ?? found.get(ref)
    if (!commit) throw new SourceError('SourceNotFound', field, `${what} was not found in ${JSON.stringify(redactUrl(source.url))}`)
    return commit
  })
}

/** Writes exactly that commit, the whole repository, without `.git`. Submodules are left out. Returns the source's own directory in it. */
export async function checkoutGit(source: GitSource, commit: string, directory: string, options: SourceOptions): Promise<string> {
  if (!/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(commit)) {
    throw new SourceError('InvalidSource', 'spec.source.git', `revision ${JSON.stringify(commit)} is not a full commit hash`)
  }
  const url = await checkedUrl(source.url, options)
  await withGit({ ...options, url }, async git => {
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
        throw new SourceError('SourceUnavailable', 'spec.source.git', `commit ${commit} could not be written: ${write.stderr.at(-1) ?? ''}`)
      }
    } finally {
      await removeTree(indexFile)
    }
  })
  await checkTree(directory)
  const wanted = (source.directory ?? '').replace(/^\.\/?/, '').replace(/\/$/, '')
  if (!wanted) return directory
  const inside = resolveInside(directory, wanted)
  const found = inside === undefined ? undefined : await stat(join(directory, inside)).catch(() => undefined)
  if (inside === undefined || !found?.isDirectory()) {
    throw new SourceError(
      'SourceNotFound',
      'spec.source.git.directory',
      `directory ${JSON.stringify(source.directory)} is not in commit ${commit}`,
    )
  }
  return join(directory, inside)
}

async function checkedUrl(text: string, { allowPaths }: SourceOptions): Promise<GitUrl> {
  const url = parseGitUrl(text)
  const field = 'spec.source.git.url'
  if (url.kind === 'refused') throw new SourceError('InvalidSource', field, `${JSON.stringify(redactUrl(text))} ${url.why}`)
  if (url.kind !== 'file') return url
  const path = await allowedDirectory(url.path, allowPaths, field)
  await checkGitDirectory(path, allowPaths)
  // The real path: what was checked is what git reads, whatever a symlink on the way says a moment later.
  return { ...url, path }
}

/** A work tree's `.git` may be a symlink, or a file that names another directory: that one must be allowed, too. */
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

function remoteOf(url: GitUrl): string {
  if (url.kind === 'refused') throw new TypeError('a refused URL has no remote')
  return url.kind === 'file' ? `file://${url.path.split('/').map(encodeURIComponent).join('/')}` : url.url
}

/**
 * The bare repository that holds `commit`: `<cache>/git/<url>/<commit>.git`, made aside and renamed into place, so that it is
 * there completely or not at all and processes need no lock to be safe. The lock beside it only saves work: of many Runs that
 * want the same commit at once, one fetches. A new commit starts from hard links of the newest one, so only what changed is sent.
 */
async function cachedCommit(git: Git, url: GitUrl, source: GitSource, commit: string, options: SourceOptions): Promise<string> {
  const name = createHash('sha256').update(remoteOf(url)).digest('hex').slice(0, 32)
  const parent = join(options.cacheDir, 'git', name)
  const place = join(parent, `${commit}.git`)
  const use = async (): Promise<boolean> => {
    const now = new Date()
    await utimes(parent, now, now)
    return utimes(place, now, now).then(
      () => true,
      () => false,
    )
  }
  await mkdir(parent, { recursive: true, mode: 0o700 })
  if (await use()) return place
  const unlock = await lockOrWait(`${place}.lock`, use, options.signal)
  if (!unlock) return place
  const made = join(parent, `new-${process.pid}-${commit}`)
  try {
    await removeTree(made)
    await seed(git, parent, made, commit.length)
    await fetchCommit(git, made, url, source, commit)
    await rename(made, place).catch(async error => {
      if (!(await use())) throw error
    })
  } finally {
    await removeTree(made)
    await unlock()
  }
  await evict(parent, keptCommits, entry => entry.endsWith('.git') && entry !== `${commit}.git`)
  await evict(join(options.cacheDir, 'git'), keptRepositories, entry => entry !== name)
  return place
}

/** An empty repository, with what the newest commit of this cache has as hard links. */
async function seed(git: Git, parent: string, made: string, hashLength: number): Promise<void> {
  const format = hashLength === 64 ? ['--object-format=sha256'] : []
  const init = await git(['init', '--bare', '--quiet', ...format, '--template=', '--', made])
  if (init.exitCode !== 0) {
    throw new SourceError('SourceUnavailable', 'spec.source.git', `no repository could be made in the cache: ${init.stderr.at(-1) ?? ''}`)
  }
  const [newest] = await byLastUse(parent, entry => /^[0-9a-f]+\.git$/.test(entry) && entry.length === hashLength + 4)
  if (!newest) return
  const from = join(parent, newest.entry)
  const packs = await readdir(join(from, 'objects', 'pack')).catch(() => [])
  if (packs.filter(pack => pack.endsWith('.pack')).length >= maxPacks) return
  await mkdir(join(made, 'objects', 'pack'), { recursive: true })
  for (const pack of packs) await link(join(from, 'objects', 'pack', pack), join(made, 'objects', 'pack', pack))
  for (const part of ['shallow', 'refs/oarlock']) {
    await cp(join(from, part), join(made, part), { recursive: true }).catch(error => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    })
  }
}

async function fetchCommit(git: Git, repository: string, url: GitUrl, source: GitSource, commit: string): Promise<void> {
  const at = `--git-dir=${repository}`
  const has = async () => (await git([at, 'cat-file', '-e', `${commit}^{tree}`])).exitCode === 0
  // The ref keeps the commit for the next fetch, which offers it as a base.
  const fetch = (...what: string[]) =>
    git([at, '-c', 'fetch.unpackLimit=1', 'fetch', '--quiet', '--no-tags', '--no-write-fetch-head', ...what])
  const exact = await fetch('--depth=1', '--', remoteOf(url), `+${commit}:refs/oarlock/${commit}`)
  if (exact.exitCode === 0 && (await has())) return
  const shown = redactUrl(source.url)
  const refusal = gitError(exact, 'spec.source.git.commit', shown, `commit ${commit}`)
  if (refusal.reason === 'SourceAuthFailed' || (refusal.reason === 'SourceUnavailable' && exact.exitCode === null)) throw refusal
  // Not every server hands out a commit by its hash (uploadpack.allowReachableSHA1InWant): then everything it shows.
  const all = await fetch('--', remoteOf(url), '+refs/heads/*:refs/oarlock/heads/*', '+refs/tags/*:refs/oarlock/tags/*')
  if (all.exitCode !== 0) throw gitError(all, 'spec.source.git.url', shown)
  if (!(await has()))
    throw new SourceError('SourceNotFound', 'spec.source.git.commit', `commit ${commit} was not found in ${JSON.stringify(shown)}`)
}

/** Resolves with an unlock function when the lock is ours, or with undefined when somebody else brought what we want. */
async function lockOrWait(path: string, isThere: () => Promise<boolean>, signal: AbortSignal): Promise<(() => Promise<void>) | undefined> {
  const mine = `${process.pid} ${readStartTime(process.pid) ?? ''}`
  const own = `${path}-${process.pid}-${Math.random().toString(36).slice(2)}`
  await writeFile(own, mine)
  try {
    for (const deadline = performance.now() + lockWaitMs; ; ) {
      try {
        // A link, not an exclusive create: the lock has its content from the first moment.
        await link(own, path)
        return () => unlink(path).catch(() => {})
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      if (await isThere()) return undefined
      if (performance.now() >= deadline) return async () => {}
      const [pid = '', startTime = ''] = (await readFile(path, 'utf8').catch(() => '')).split(' ')
      if (pid && readStartTime(Number(pid)) !== (startTime || undefined)) await unlink(path).catch(() => {})
      else await delay(lockPollMs, undefined, { signal })
    }
  } finally {
    await unlink(own).catch(() => {})
  }
}

async function evict(parent: string, keep: number, mayGo: (entry: string) => boolean): Promise<void> {
  // One in use by another process right now was touched a moment ago; a minute is far more than a checkout's first open takes.
  for (const { entry, atMs } of (await byLastUse(parent, mayGo)).slice(keep - 1)) {
    if (Date.now() - atMs > 60_000) await removeTree(join(parent, entry))
  }
}

async function byLastUse(parent: string, wanted: (entry: string) => boolean): Promise<{ entry: string; atMs: number }[]> {
  const entries = (await readdir(parent)).filter(wanted)
  const used = await Promise.all(
    entries.map(async entry => ({ entry, atMs: (await stat(join(parent, entry)).catch(() => undefined))?.mtimeMs ?? 0 })),
  )
  return used.sort((a, b) => b.atMs - a.atMs)
}

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
        if (resolveInside(root, path) === undefined) throw outsideLink('spec.source.git', path, await readlink(join(root, path)))
      } else bytes += (await lstat(join(root, path))).size
      if (bytes > maxSourceBytes)
        throw new SourceError('InvalidSource', 'spec.source.git', `the repository has more than ${maxSourceBytes} bytes`)
    }
  }
  await walk('')
}
