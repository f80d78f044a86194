import { cp, link, mkdir, readdir, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256 } from '../../kubernetes/util/index.ts'
import { type Release, takeIntoUse, takeOrLock, touch, useLocked } from './entry-lock.ts'
import { evictCommits, type GitCacheLimits } from './git-cache-eviction.ts'
import { type Git, maxPackBytes } from './git-command.ts'
import { gitError } from './git-error.ts'
import { type GitUrl, redactUrl, remoteOf } from './git-url.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import { defaultGitCacheBytes, type GitCredentials, type GitSource, type SourceOptions } from './source-options.ts'
import { temporaryName } from './temporary-name.ts'

/** Commits kept per repository, and repositories kept in total; the least recently used are removed first (invariant 10). */
const maxCommits = 4
const maxRepositories = 64
/** A cached repository has the packs of its predecessor and its own; with this many packs the next one is fetched from scratch. */
const maxPacks = 20

/**
 * Calls `work` with the bare repository that contains `commit`: `<cache>/git/<url and credentials>/<commit>.git`. Only who has the credentials
 * that fetched it finds it: others must show the server theirs, because nothing else knows who may read it. It is created under a temporary name
 * and renamed, so it is visible either completely or not at all, and is not removed while `work` runs, in this process or another. Of many Runs
 * that need the same commit at the same time, one fetches it. A new commit starts with hard links to the packs of the newest one, so only
 * the difference is transferred.
 */
export async function withCachedCommit<T>(
  git: Git,
  url: GitUrl,
  source: GitSource,
  commit: string,
  options: Pick<SourceOptions, 'cacheDir' | 'cacheBytes' | 'signal' | 'credentials' | 'maxBytes'>,
  work: (repository: string) => Promise<T>,
): Promise<T> {
  const directory = join(options.cacheDir, 'git')
  const parent = join(directory, cacheKey(url, options.credentials))
  const cached = join(parent, `${commit}.git`)
  const found = await retryIfMissing(parent, () => takeOrLock(cached, options.signal))
  let release: Release
  if ('release' in found) release = found.release
  else {
    try {
      await addCommit(git, parent, url, source, commit, maxPackBytes(options))
      release = await useLocked(cached)
    } finally {
      await found.unlock()
    }
  }
  try {
    await touch(cached)
    if ('unlock' in found) await evictCommits(directory, limitsOf(options))
    return await work(cached)
  } finally {
    await release()
  }
}

function limitsOf({ cacheBytes = defaultGitCacheBytes }: Pick<SourceOptions, 'cacheBytes'>): GitCacheLimits {
  return { bytes: cacheBytes, commits: maxCommits, repositories: maxRepositories }
}

/** Creates the directory before each attempt: another process removes it when it is empty. */
async function retryIfMissing<T>(directory: string, attempt: () => Promise<T>): Promise<T> {
  for (let attempts = 1; ; attempts++) {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    try {
      return await attempt()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempts === 10) throw error
    }
  }
}

/** Fetches `commit` and adds it to the cache. */
async function addCommit(git: Git, parent: string, url: GitUrl, source: GitSource, commit: string, maxBytes: number): Promise<void> {
  const cached = join(parent, `${commit}.git`)
  const temporary = join(parent, temporaryName(commit))
  try {
    await removeTree(temporary)
    await initRepository(git, parent, temporary, commit.length)
    await fetchCommit(git, temporary, url, source, commit, maxBytes)
    await rename(temporary, cached).catch(error => {
      // Another process that waited for too long has added it.
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    })
  } finally {
    await removeTree(temporary)
  }
}

/** Credentials of another transport are not used, so they give no access. */
function cacheKey(url: GitUrl, { username, password, sshPrivateKey }: GitCredentials = {}): string {
  const used = url.kind === 'https' && password !== undefined ? [username ?? '', password] : url.kind === 'ssh' ? [sshPrivateKey ?? ''] : []
  return sha256(JSON.stringify([remoteOf(url), ...used])).slice(0, 32)
}

/** Creates a bare repository with hard links to the objects of the newest cached commit. */
async function initRepository(git: Git, parent: string, repository: string, hashLength: number): Promise<void> {
  const format = hashLength === 64 ? ['--object-format=sha256'] : []
  const init = await git(['init', '--bare', '--quiet', ...format, '--template=', '--', repository])
  if (init.exitCode !== 0) {
    const message = `cannot create a repository in the cache: ${init.stderr.at(-1) ?? ''}`
    throw new SourceError('SourceUnavailable', 'spec.source.git', message)
  }
  // Wins over every .gitattributes: each file gets exactly the bytes of the commit, so that its size is known before it is written.
  await mkdir(join(repository, 'info'), { recursive: true })
  await writeFile(join(repository, 'info', 'attributes'), '* -text -ident !eol !working-tree-encoding !filter\n')
  const newest = await newestCommit(parent, hashLength)
  const release = newest && (await takeIntoUse(newest))
  if (!release) return
  try {
    await linkObjects(newest, repository)
  } finally {
    await release()
  }
}

async function linkObjects(from: string, to: string): Promise<void> {
  const packs = await readdir(join(from, 'objects', 'pack')).catch(() => [])
  if (packs.filter(pack => pack.endsWith('.pack')).length >= maxPacks) return
  await mkdir(join(to, 'objects', 'pack'), { recursive: true })
  for (const pack of packs) await link(join(from, 'objects', 'pack', pack), join(to, 'objects', 'pack', pack))
  for (const part of ['shallow', 'refs/oarlock']) {
    await cp(join(from, part), join(to, part), { recursive: true }).catch(error => {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    })
  }
}

async function fetchCommit(git: Git, repository: string, url: GitUrl, source: GitSource, commit: string, maxBytes: number): Promise<void> {
  const gitDir = `--git-dir=${repository}`
  const hasCommit = async () => (await git([gitDir, 'cat-file', '-e', `${commit}^{tree}`])).exitCode === 0
  // The ref keeps the commit for the next fetch, which can negotiate from it.
  const fetch = (...args: string[]) =>
    git([gitDir, '-c', 'fetch.unpackLimit=1', 'fetch', '--quiet', '--no-tags', '--no-write-fetch-head', ...args])
  const exact = await fetch('--depth=1', '--', remoteOf(url), `+${commit}:refs/oarlock/${commit}`)
  if (exact.exitCode === 0 && (await hasCommit())) return
  const shownUrl = redactUrl(source.url)
  const failIfTooLarge = async () => {
    if (!(await hasTruncatedPack(repository, maxBytes))) return
    throw new SourceError('InvalidSource', 'spec.source.git.url', `${JSON.stringify(shownUrl)} has a pack of more than ${maxBytes} bytes`)
  }
  await failIfTooLarge()
  const rejection = gitError(exact, 'spec.source.git.commit', shownUrl, `commit ${commit}`)
  if (rejection.reason === 'SourceAuthFailed' || (rejection.reason === 'SourceUnavailable' && exact.exitCode === null)) throw rejection
  // Some servers do not serve a commit by its hash (uploadpack.allowReachableSHA1InWant): then all branches and tags are fetched.
  const all = await fetch('--', remoteOf(url), '+refs/heads/*:refs/oarlock/heads/*', '+refs/tags/*:refs/oarlock/tags/*')
  await failIfTooLarge()
  if (all.exitCode !== 0) throw gitError(all, 'spec.source.git.url', shownUrl)
  if (!(await hasCommit()))
    throw new SourceError('SourceNotFound', 'spec.source.git.commit', `commit ${commit} was not found in ${JSON.stringify(shownUrl)}`)
}

/** Git was ended by the kernel when the pack that it received reached the limit on the size of a file. Git itself does not report that. */
async function hasTruncatedPack(repository: string, maxBytes: number): Promise<boolean> {
  const directory = join(repository, 'objects', 'pack')
  const received = (await readdir(directory).catch(() => [])).filter(name => name.startsWith('tmp_pack_'))
  const sizes = await Promise.all(received.map(async name => (await stat(join(directory, name))).size))
  return sizes.some(size => size >= maxBytes)
}

/** The most recently used commit with hashes of this length. */
async function newestCommit(parent: string, hashLength: number): Promise<string | undefined> {
  const entries = (await readdir(parent)).filter(entry => /^[0-9a-f]+\.git$/.test(entry) && entry.length === hashLength + 4)
  const used = await Promise.all(
    entries.map(async entry => ({
      path: join(parent, entry),
      atMs: (await stat(join(parent, entry)).catch(() => undefined))?.mtimeMs ?? 0,
    })),
  )
  return used.sort((a, b) => b.atMs - a.atMs)[0]?.path
}
