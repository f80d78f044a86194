import assert from 'node:assert/strict'
import { execFileSync, fork, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeUnlessUsed, takeIntoUse, takeOrLock } from './entry-lock.ts'
import { withCachedCommit } from './git-cache.ts'
import { evictCommits } from './git-cache-eviction.ts'
import { withIsolatedGit } from './git-command.ts'
import { parseGitUrl } from './git-url.ts'
import { readStartTime } from './process/index.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-git-cache-'))
after(() => rmSync(base, { recursive: true, force: true }))
const { signal } = new AbortController()
let directories = 0
const emptyDirectory = () => {
  const path = join(base, `directory${directories++}`)
  mkdirSync(path)
  return path
}

/** A repository whose commits have one file of `bytes` random bytes each. */
function repository(bytes: number) {
  const directory = emptyDirectory()
  const git = (...args: string[]) =>
    execFileSync('git', ['-C', directory, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], { encoding: 'utf8' }).trim()
  git('init', '--quiet')
  return {
    url: `file://${directory}`,
    commit(): string {
      writeFileSync(join(directory, 'file'), randomBytes(bytes))
      git('add', '.')
      git('commit', '--quiet', '-m', 'a commit')
      return git('rev-parse', 'HEAD')
    },
  }
}

function use<T>(cacheDir: string, url: string, commit: string, cacheBytes: number, work: (repository: string) => Promise<T>): Promise<T> {
  const parsed = parseGitUrl(url)
  assert.ok(parsed.kind === 'file')
  return withIsolatedGit({ url: parsed, signal, cacheDir }, git =>
    withCachedCommit(git, parsed, { url }, commit, { cacheDir, cacheBytes, signal }, work),
  )
}

const pathOf = async (repository: string) => repository
const commitsIn = (cacheDir: string) =>
  readdirSync(join(cacheDir, 'git'), { recursive: true, encoding: 'utf8' }).filter(name => /^[^/]+\/[^/]+$/.test(name))

/** Makes the repository the least recently used one by far. */
const age = (path: string, hours: number) => {
  const then = new Date(Date.now() - hours * 3_600_000)
  utimesSync(path, then, then)
}

test('the least recently used commits are removed when the cache exceeds its size', async () => {
  const cacheDir = emptyDirectory()
  const paths: string[] = []
  for (let index = 0; index < 4; index++) {
    const source = repository(300_000)
    paths.push(await use(cacheDir, source.url, source.commit(), 10_000_000, pathOf))
  }
  for (const [index, path] of paths.entries()) age(path, 10 - index)
  const source = repository(300_000)
  const newest = await use(cacheDir, source.url, source.commit(), 1_300_000, pathOf)
  assert.deepEqual(
    [...paths, newest].map(path => existsSync(path)),
    [false, false, true, true, true],
  )
  assert.equal(commitsIn(cacheDir).length, 3, 'nothing else remains, and no empty directories')
})

test('a pack that two commits share is counted once', async () => {
  const cacheDir = emptyDirectory()
  const source = repository(300_000)
  const first = await use(cacheDir, source.url, source.commit(), 1_000_000, pathOf)
  const second = await use(cacheDir, source.url, source.commit(), 1_000_000, pathOf)
  assert.deepEqual([first, second].map(existsSync), [true, true], '600 KB in two packs, of which the second commit has both')
  age(first, 1)
  await evictCommits(join(cacheDir, 'git'), { bytes: 500_000, commits: 9, repositories: 9 })
  assert.deepEqual([first, second].map(existsSync), [false, false], 'without the first commit its pack is still there')
})

test('a commit in use is not removed, whatever the size of the cache', async () => {
  const cacheDir = emptyDirectory()
  const old = repository(1_000)
  const commit = old.commit()
  const other = repository(1_000)
  const path = await use(cacheDir, old.url, commit, 0, async used => {
    age(used, 1)
    await use(cacheDir, other.url, other.commit(), 0, async second => assert.ok(existsSync(second)))
    const size = execFileSync('git', [`--git-dir=${used}`, 'cat-file', '-s', `${commit}:file`], { encoding: 'utf8' })
    assert.equal(size.trim(), '1000')
    return used
  })
  await use(cacheDir, other.url, other.commit(), 0, async () => assert.equal(existsSync(path), false, 'it is removed afterwards'))
})

test('a use counts as long as its process exists, and for some time in case the process cannot be seen', async () => {
  const parent = emptyDirectory()
  const path = join(parent, 'a.git')
  mkdirSync(path)
  const remove = async () => rmSync(path, { recursive: true })
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'inherit'] })
  await once(child, 'spawn')
  const useOfChild = `${path}.use-child`
  writeFileSync(useOfChild, `${child.pid} ${readStartTime(child.pid!)}`)
  age(useOfChild, 1)
  assert.equal(await removeUnlessUsed(path, remove), false)
  const ended = once(child, 'exit')
  child.stdin.end()
  await ended
  writeFileSync(useOfChild, readFileSync(useOfChild))
  assert.equal(await removeUnlessUsed(path, remove), false, 'it may be a process of another container')
  age(useOfChild, 1)
  assert.equal(await removeUnlessUsed(path, remove), true)
  assert.deepEqual(readdirSync(parent), [])
})

test('what is being removed cannot be taken into use', async () => {
  const parent = emptyDirectory()
  const path = join(parent, 'a.git')
  mkdirSync(path)
  let waiting: ReturnType<typeof takeOrLock> | undefined
  const isRemoved = await removeUnlessUsed(path, async () => {
    assert.equal(await takeIntoUse(path), undefined)
    waiting = takeOrLock(path, signal)
    rmSync(path, { recursive: true })
  })
  assert.equal(isRemoved, true)
  const taken = await waiting!
  assert.ok('unlock' in taken, 'who waited fetches it again')
  assert.equal(await removeUnlessUsed(path, async () => {}), false, 'what is locked is not removed')
  await taken.unlock()
  assert.deepEqual(readdirSync(parent), [])
})

test('processes that share a cache without space for anything all get what they need', async () => {
  const cacheDir = emptyDirectory()
  const sources = [repository(10_000), repository(10_000)].map(source => ({ url: source.url, commit: source.commit() }))
  const fetched = await Promise.all(
    [0, 1, 2, 3].map(async number => {
      const { url, commit } = sources[number % 2]!
      const directory = emptyDirectory()
      const script = join(import.meta.dirname, 'fetch.testing.ts')
      const child = fork(script, [url, commit, directory, base, cacheDir, '0'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
      const [exitCode] = await once(child, 'exit')
      return [exitCode, statSync(join(directory, 'file')).size]
    }),
  )
  assert.deepEqual(fetched, Array(4).fill([0, 10_000]))
})
