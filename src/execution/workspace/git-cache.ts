import { cp, link, mkdir, readdir, readFile, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { sha256 } from '../../kubernetes/util/index.ts'
import { type Git, maxPackBytes } from './git-command.ts'
import { gitError } from './git-error.ts'
import { type GitUrl, redactUrl, remoteOf } from './git-url.ts'
import { readStartTime } from './process/index.ts'
import { removeTree } from './run-directory.ts'
import { SourceError } from './source-error.ts'
import type { GitCredentials, GitSource, SourceOptions } from './source-options.ts'

/** Commits kept per repository, and repositories kept in total; the least recently used are removed first (invariant 10). */
const maxCommits = 4
const maxRepositories = 64
/** A cached repository has the packs of its predecessor and its own; with this many packs the next one is fetched from scratch. */
const maxPacks = 20
const lockPollMs = 50
/** How long to wait for another process that fetches the same commit before fetching it here. */
const lockWaitMs = 120_000
/** Entries used more recently than this are not removed: another process may be reading them. A checkout opens its files within seconds. */
const minEvictionAgeMs = 60_000

/**
 * The bare repository that contains `commit`: `<cache>/git/<url and credentials>/<commit>.git`. Only who has the credentials that fetched it
 * finds it: others must show the server theirs, because nothing else knows who may read it. It is created under a temporary name and renamed, so it
 * is visible either completely or not at all, and processes need no lock to be safe. The lock next to it only saves work: of many Runs
 * that need the same commit at the same time, one fetches it. A new commit starts with hard links to the packs of the newest one, so only
 * the difference is transferred.
 */
export async function cachedCommit(
  git: Git,
  url: GitUrl,
  source: GitSource,
  commit: string,
  options: Pick<SourceOptions, 'cacheDir' | 'signal' | 'credentials' | 'maxBytes'>,
): Promise<string> {
  const name = cacheKey(url, options.credentials)
  const parent = join(options.cacheDir, 'git', name)
  const cached = join(parent, `${commit}.git`)
  const touchIfCached = async (): Promise<boolean> => {
    const now = new Date()
    await utimes(parent, now, now)
    return utimes(cached, now, now).then(
      () => true,
      () => false,
    )
  }
  await mkdir(parent, { recursive: true, mode: 0o700 })
  if (await touchIfCached()) return cached
  const unlock = await lockOrWait(`${cached}.lock`, touchIfCached, options.signal)
  if (!unlock) return cached
  const temporary = join(parent, `new-${process.pid}-${commit}`)
  try {
    await removeTree(temporary)
    await initRepository(git, parent, temporary, commit.length)
    await fetchCommit(git, temporary, url, source, commit, maxPackBytes(options))
    await rename(temporary, cached).catch(async error => {
      if (!(await touchIfCached())) throw error
    })
  } finally {
    await removeTree(temporary)
    await unlock()
  }
  await evict(parent, maxCommits, entry => entry.endsWith('.git') && entry !== `${commit}.git`)
  await evict(join(options.cacheDir, 'git'), maxRepositories, entry => entry !== name)
  return cached
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
  const [newest] = await byLastUse(parent, entry => /^[0-9a-f]+\.git$/.test(entry) && entry.length === hashLength + 4)
  if (!newest) return
  const from = join(parent, newest.entry)
  const packs = await readdir(join(from, 'objects', 'pack')).catch(() => [])
  if (packs.filter(pack => pack.endsWith('.pack')).length >= maxPacks) return
  await mkdir(join(repository, 'objects', 'pack'), { recursive: true })
  for (const pack of packs) await link(join(from, 'objects', 'pack', pack), join(repository, 'objects', 'pack', pack))
  for (const part of ['shallow', 'refs/oarlock']) {
    await cp(join(from, part), join(repository, part), { recursive: true }).catch(error => {
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

/** Resolves with an unlock function when this process has the lock, or with undefined when another process has cached the commit. */
async function lockOrWait(path: string, isCached: () => Promise<boolean>, signal: AbortSignal): Promise<(() => Promise<void>) | undefined> {
  const content = `${process.pid} ${readStartTime(process.pid) ?? ''}`
  const own = `${path}-${process.pid}-${Math.random().toString(36).slice(2)}`
  await writeFile(own, content)
  try {
    for (const deadline = performance.now() + lockWaitMs; ; ) {
      try {
        // A link instead of an exclusive create: the lock never exists without its content.
        await link(own, path)
        return () => unlink(path).catch(() => {})
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      if (await isCached()) return undefined
      if (performance.now() >= deadline) return async () => {}
      const [pid = '', startTime = ''] = (await readFile(path, 'utf8').catch(() => '')).split(' ')
      const isStale = pid !== '' && readStartTime(Number(pid)) !== (startTime || undefined)
      if (isStale) await unlink(path).catch(() => {})
      else await delay(lockPollMs, undefined, { signal })
    }
  } finally {
    await unlink(own).catch(() => {})
  }
}

async function evict(parent: string, keep: number, isCandidate: (entry: string) => boolean): Promise<void> {
  for (const { entry, atMs } of (await byLastUse(parent, isCandidate)).slice(keep - 1)) {
    if (Date.now() - atMs > minEvictionAgeMs) await removeTree(join(parent, entry))
  }
}

/** Most recently used first. */
async function byLastUse(parent: string, filter: (entry: string) => boolean): Promise<{ entry: string; atMs: number }[]> {
  const entries = (await readdir(parent)).filter(filter)
  const used = await Promise.all(
    entries.map(async entry => ({ entry, atMs: (await stat(join(parent, entry)).catch(() => undefined))?.mtimeMs ?? 0 })),
  )
  return used.sort((a, b) => b.atMs - a.atMs)
}
