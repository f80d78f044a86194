import assert from 'node:assert/strict'
import { execFileSync, fork } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import type { StackSource } from '../../api/index.ts'
import { createRunDirectory, fetchSource, gitCredentials, resolveRevision, SourceError, type SourceErrorReason } from './index.ts'

const base = realpathSync(mkdtempSync(join(tmpdir(), 'oarlock-source-')))
after(() => rmSync(base, { recursive: true, force: true }))
const allowed = join(base, 'allowed')
const cacheDir = join(base, 'cache')
mkdirSync(allowed)
const options = { allowPaths: [allowed], signal: new AbortController().signal, cacheDir }

let count = 0
const emptyDirectory = () => join(base, 'runs', `${++count}`)

function write(files: Record<string, string>, root: string): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), content)
  }
}

function git(cwd: string, ...args: string[]): string {
  const env = {
    ...process.env,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z',
    GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z',
  }
  return execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
    cwd,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim()
}

function repository(
  name: string,
  files: Record<string, string>,
): { directory: string; url: string; commit(files: Record<string, string>): string } {
  const directory = join(allowed, name)
  mkdirSync(directory)
  git(directory, 'init', '-q', '-b', 'main')
  const commit = (more: Record<string, string>) => {
    write(more, directory)
    git(directory, 'add', '-A')
    git(directory, 'commit', '-q', '-m', 'change')
    return git(directory, 'rev-parse', 'HEAD')
  }
  commit(files)
  return { directory, url: `file://${directory}`, commit }
}

async function rejected(action: Promise<unknown>, reason: SourceErrorReason, message: RegExp): Promise<void> {
  await assert.rejects(action, error => {
    assert.ok(error instanceof SourceError, String(error))
    assert.equal(error.reason, reason, error.message)
    assert.match(error.message, message)
    return true
  })
}

async function fetchToDirectory(source: StackSource, revision?: string): Promise<string> {
  return (await fetchSource(source, revision ?? (await resolveRevision(source, options)), emptyDirectory(), options)).directory
}

test('inline: writes files, directories and executables; the revision depends on names and contents', async () => {
  const files = { 'main.tf': 'a', 'modules/x/run.sh': '#!/bin/sh\n', 'ü.txt': 'ü' }
  const directory = await fetchToDirectory({ inline: { files } })
  for (const [name, content] of Object.entries(files)) assert.equal(readFileSync(join(directory, name), 'utf8'), content)
  assert.equal(lstatSync(join(directory, 'modules/x/run.sh')).mode & 0o100, 0o100)
  const revision = (more: Record<string, string>) => resolveRevision({ inline: { files: more } }, options)
  assert.equal(await revision({ a: '1', b: '2' }), await revision({ b: '2', a: '1' }))
  assert.notEqual(await revision({ a: '1', b: '2' }), await revision({ a: '12', b: '' }))
  assert.notEqual(await revision({ a: '1' }), await revision({ a1: '' }))
})

test('path: copies files with modes and inner symlinks, without .git and .terraform', async () => {
  const root = join(allowed, 'plain')
  write({ 'main.tf': 'x', 'sub/run.sh': '#!/bin/sh', '.git/config': 'x', 'sub/.terraform/big': 'x' }, root)
  chmodSync(join(root, 'sub/run.sh'), 0o755)
  symlinkSync('../main.tf', join(root, 'sub/link.tf'))
  const directory = await fetchToDirectory({ path: { path: root } })
  assert.deepEqual(readdirSync(directory, { recursive: true }).sort(), ['main.tf', 'sub', 'sub/link.tf', 'sub/run.sh'])
  assert.equal(readFileSync(join(directory, 'sub/link.tf'), 'utf8'), 'x')
  assert.equal(lstatSync(join(directory, 'sub/run.sh')).mode & 0o777, 0o755)
})

test('path: rejects files that changed after the revision was computed', async () => {
  const root = join(allowed, 'changing')
  write({ a: '1' }, root)
  const revision = await resolveRevision({ path: { path: root } }, options)
  assert.equal(await resolveRevision({ path: { path: root } }, options), revision)
  write({ a: '22' }, root)
  assert.notEqual(await resolveRevision({ path: { path: root } }, options), revision)
  await rejected(fetchToDirectory({ path: { path: root } }, revision), 'SourceChanged', /changed before this Run/)
})

test('path: rejects paths outside of the allowed roots', async () => {
  write({ secret: 's' }, join(base, 'outside'))
  symlinkSync(join(base, 'outside'), join(allowed, 'link'))
  const resolve = (path: string, allowPaths = [allowed]) => resolveRevision({ path: { path } }, { ...options, allowPaths })
  await rejected(
    resolve(join(base, 'outside')),
    'SourceNotAllowed',
    /spec\.source\.path\.path: ".*outside" is not below an allowed directory \(allowed: \/.*allowed\); allow it with --allow-path DIR/,
  )
  await rejected(resolve(join(base, 'no-such')), 'SourceNotAllowed', /not below an allowed/)
  await rejected(resolve(join(allowed, 'link')), 'SourceNotAllowed', /not below an allowed/)
  await rejected(resolve(join(allowed, 'link'), []), 'SourceNotAllowed', /--allow-path DIR/)
  await rejected(resolve(join(allowed, 'no-such')), 'SourceNotFound', /does not exist on this worker/)
  await rejected(resolve(`${allowed}-not`), 'SourceNotAllowed', /not below/)
})

for (const [name, target] of [
  ['absolute', '/etc/passwd'],
  ['device', '/dev/zero'],
  ['relative', '../../outside/secret'],
  ['indirect', 'self/../../outside/secret'],
] as const) {
  test(`path: rejects a symlink that points out of the source: ${name}`, async () => {
    const root = join(allowed, `link-${name}`)
    write({ a: '1' }, root)
    symlinkSync('.', join(root, 'self'))
    symlinkSync(target, join(root, 'link'))
    const error = /symlink "link" points to .*must be relative and stay inside/
    await rejected(resolveRevision({ path: { path: root } }, options), 'SourceNotAllowed', error)
    // Also if the link appears after the revision was determined.
    await rejected(fetchSource({ path: { path: root } }, 'x', emptyDirectory(), options), 'SourceNotAllowed', error)
  })
}

test('path: rejects pipes and the directory of the Runs', async () => {
  write({ a: '1' }, join(allowed, 'pipe'))
  execFileSync('mkfifo', [join(allowed, 'pipe/fifo')])
  await rejected(resolveRevision({ path: { path: join(allowed, 'pipe') } }, options), 'InvalidSource', /"fifo" is a socket, pipe or device/)
  await rejected(
    fetchSource({ path: { path: base } }, 'x', emptyDirectory(), { ...options, allowPaths: [base] }),
    'SourceNotAllowed',
    /contains the directories of the worker's Runs/,
  )
})

test('git: resolves branch, tag, annotated tag, HEAD and commit, and writes exactly that commit', async () => {
  const { directory, url, commit } = repository('refs', { 'main.tf': 'one', 'modules/m/main.tf': 'm', 'stacks/a/main.tf': 'a' })
  const first = git(directory, 'rev-parse', 'HEAD')
  git(directory, 'tag', 'light')
  git(directory, 'tag', '-a', 'heavy', '-m', 'x')
  git(directory, 'branch', 'old/branch')
  const second = commit({ 'main.tf': 'two' })
  const revision = (more: object) => resolveRevision({ git: { url, ...more } }, options)
  assert.equal(await revision({}), second)
  assert.equal(await revision({ branch: 'main' }), second)
  assert.equal(await revision({ branch: 'old/branch' }), first)
  assert.equal(await revision({ tag: 'light' }), first)
  assert.equal(await revision({ tag: 'heavy' }), first)
  assert.equal(await revision({ commit: first }), first)
  for (const [at, content] of [
    [first, 'one'],
    [second, 'two'],
    [first, 'one'],
  ] as const) {
    const root = await fetchToDirectory({ git: { url } }, at)
    assert.equal(readFileSync(join(root, 'main.tf'), 'utf8'), content)
    assert.equal(existsSync(join(root, '.git')), false)
  }
  const stack = await fetchToDirectory({ git: { url, directory: 'stacks/a' } }, second)
  assert.equal(readFileSync(join(stack, '../../modules/m/main.tf'), 'utf8'), 'm')
})

test('git: the error names the missing branch, tag, commit, directory or repository', async () => {
  const { url } = repository('missing', { a: '1' })
  const at = (more: object) => resolveRevision({ git: { url, ...more } }, options)
  await rejected(at({ branch: 'nope' }), 'SourceNotFound', /spec\.source\.git\.branch: branch "nope" was not found in "file:/)
  await rejected(at({ tag: 'nope' }), 'SourceNotFound', /tag "nope"/)
  await rejected(fetchToDirectory({ git: { url } }, 'b'.repeat(40)), 'SourceNotFound', /commit b{40} was not found/)
  await rejected(
    fetchToDirectory({ git: { url, directory: 'no/such' } }),
    'SourceNotFound',
    /spec\.source\.git\.directory: directory "no\/such" does not exist in commit/,
  )
  await rejected(resolveRevision({ git: { url: `file://${allowed}/none.git` } }, options), 'SourceNotFound', /does not exist/)
  mkdirSync(join(allowed, 'empty'))
  await rejected(resolveRevision({ git: { url: `file://${allowed}/empty` } }, options), 'SourceNotFound', /is not a readable repository/)
  await rejected(
    resolveRevision({ git: { url: 'https://127.0.0.1:1/x.git' } }, options),
    'SourceUnavailable',
    /cannot be reached|Failed to connect/,
  )
})

test('git: rejects file URLs outside of the allowed roots, also through symlinks and .git files', async () => {
  const outside = join(base, 'outside-repository')
  mkdirSync(outside)
  git(outside, 'init', '-q')
  await rejected(resolveRevision({ git: { url: `file://${outside}` } }, options), 'SourceNotAllowed', /not below an allowed directory/)
  symlinkSync(outside, join(allowed, 'repository-link'))
  await rejected(resolveRevision({ git: { url: `file://${allowed}/repository-link` } }, options), 'SourceNotAllowed', /not below/)
  mkdirSync(join(allowed, 'git-file'))
  writeFileSync(join(allowed, 'git-file/.git'), `gitdir: ${outside}/.git\n`)
  await rejected(resolveRevision({ git: { url: `file://${allowed}/git-file` } }, options), 'SourceNotAllowed', /not below/)
})

for (const [name, target] of [
  ['a file', '../../../../etc/passwd'],
  ['a device', '/dev/zero'],
] as const) {
  test(`git: rejects a symlink that points out of the repository, to ${name}`, async () => {
    const { directory, url, commit } = repository(`links-to-${name.slice(2)}`, { a: '1' })
    symlinkSync(target, join(directory, 'main.tf'))
    commit({ b: '2' })
    await rejected(fetchToDirectory({ git: { url } }), 'SourceNotAllowed', /spec\.source\.git: symlink "main\.tf" points to/)
  })
}

test('git: a repository cannot run hooks, filters or helpers', async t => {
  const { directory, url, commit } = repository('attributes', { a: '1' })
  const revision = commit({ '.gitattributes': '* filter=evil\n', b: '2' })
  const evil = join(base, 'evil')
  const hooks = join(evil, 'hooks')
  mkdirSync(hooks, { recursive: true })
  const marker = (name: string) => `#!/bin/sh\n: > ${evil}/ran-$(basename "$0")-${name}\n`
  for (const hook of ['post-index-change', 'post-checkout', 'reference-transaction'])
    writeFileSync(join(hooks, hook), marker('hook'), { mode: 0o755 })
  writeFileSync(join(evil, 'smudge'), `${marker('filter')}cat\n`, { mode: 0o755 })
  writeFileSync(join(evil, 'helper'), marker('helper'), { mode: 0o755 })
  const config = join(evil, 'config')
  const filter = `[filter "evil"]\n\tsmudge = ${evil}/smudge\n\trequired = true\n`
  writeFileSync(config, `[core]\n\thooksPath = ${hooks}\n${filter}[credential]\n\thelper = ${evil}/helper\n`)
  const ran = () => readdirSync(evil).filter(name => name.startsWith('ran-'))

  const { GIT_CONFIG_GLOBAL: before } = process.env
  process.env.GIT_CONFIG_GLOBAL = config
  t.after(() => {
    if (before === undefined) delete process.env.GIT_CONFIG_GLOBAL
    else process.env.GIT_CONFIG_GLOBAL = before
  })
  execFileSync('git', ['clone', '-q', directory, join(base, 'plain-clone')], { stdio: 'ignore' })
  const wanted = { input: 'protocol=https\nhost=git.invalid\n\n', env: { ...process.env, GIT_TERMINAL_PROMPT: '0', GIT_ASKPASS: '' } }
  assert.throws(() => execFileSync('git', ['credential', 'fill'], { ...wanted, stdio: ['pipe', 'ignore', 'ignore'] }))
  for (const name of ['ran-post-index-change-hook', 'ran-smudge-filter', 'ran-helper-helper'])
    assert.ok(ran().includes(name), `plain git did not run what leaves ${name}`)
  for (const name of ran()) rmSync(join(evil, name))

  const own = { ...options, cacheDir: join(base, 'evil-cache') }
  const checkOut = async () => {
    const fetched = await fetchSource({ git: { url } }, await resolveRevision({ git: { url } }, own), emptyDirectory(), own)
    assert.equal(readFileSync(join(fetched.directory, 'b'), 'utf8'), '2')
    assert.deepEqual(ran(), [])
  }
  await checkOut()
  // Git reads the configuration and the hooks of the repository in the cache too.
  const [cached] = readdirSync(own.cacheDir, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith(`${revision}.git`))
  const repositoryConfig = join(own.cacheDir, cached!, 'config')
  writeFileSync(repositoryConfig, `${readFileSync(repositoryConfig, 'utf8')}[include]\n\tpath = ${config}\n`)
  await checkOut()
})

test('git: a small repository with large files is rejected before anything is written', async () => {
  const { directory, url, commit } = repository('bomb', { a: '1' })
  commit({ zeros: '0'.repeat(5_000_000) })
  const to = emptyDirectory()
  const fetch = (maxBytes: number) => fetchSource({ git: { url } }, git(directory, 'rev-parse', 'HEAD'), to, { ...options, maxBytes })
  await rejected(fetch(5_000_000), 'InvalidSource', /the repository has more than 5000000 bytes/)
  assert.deepEqual(readdirSync(to), [])
  await fetch(5_000_001)
  assert.equal(lstatSync(join(to, 'zeros')).size, 5_000_000)
  rmSync(join(to, 'zeros'))
  await rejected(fetch(5_000_000), 'InvalidSource', /the repository has more than 5000000 bytes/)
})

test('git: a tree that contains itself many times is rejected without listing all of it', { timeout: 60_000 }, async () => {
  const { directory, url } = repository('tree-bomb', { a: '1' })
  const makeTree = (entries: string) => execFileSync('git', ['mktree'], { cwd: directory, input: entries, encoding: 'utf8' }).trim()
  // 10^12 directories, without a single file.
  let tree = makeTree('')
  for (let depth = 0; depth < 12; depth++) tree = makeTree(Array.from({ length: 10 }, (_, i) => `040000 tree ${tree}\td${i}\n`).join(''))
  const commit = git(directory, 'commit-tree', tree, '-m', 'bomb')
  git(directory, 'update-ref', 'refs/heads/main', commit)
  await rejected(fetchToDirectory({ git: { url } }, commit), 'InvalidSource', /the repository has more than 100000 files/)
})

test('git: a pack above the limit is not received', async () => {
  const { directory, url, commit } = repository('pack', { a: '1' })
  commit({ random: randomBytes(300_000).toString('base64') })
  const maxBytes = 50_000
  const cache = join(base, 'pack-cache')
  const fetch = fetchSource({ git: { url } }, git(directory, 'rev-parse', 'HEAD'), emptyDirectory(), {
    ...options,
    maxBytes,
    cacheDir: cache,
  })
  await rejected(fetch, 'InvalidSource', /has a pack of more than 100000 bytes/)
  const written = readdirSync(cache, { recursive: true, encoding: 'utf8' }).map(name => lstatSync(join(cache, name)).size)
  assert.ok(Math.max(...written) <= 2 * maxBytes, `${Math.max(...written)}`)
})

test('git: attributes of a repository change no file, so none is larger than in the commit', async () => {
  const { directory, url, commit } = repository('encoding', { a: '1' })
  writeFileSync(join(directory, '.git/info/attributes'), '* !working-tree-encoding\n')
  commit({ 'b.txt': '$Id$\n' })
  commit({ '.gitattributes': '*.txt text eol=crlf working-tree-encoding=UTF-32 ident\n' })
  assert.equal(readFileSync(join(await fetchToDirectory({ git: { url } }), 'b.txt'), 'utf8'), '$Id$\n')
})

test("git: without a Secret, ssh gets no key of the worker's user or its agent", async t => {
  const seen = join(base, 'ssh-arguments')
  const bin = join(base, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'ssh'), `#!/bin/sh\nprintf '%s\\n' "$@" >> ${seen}\nexit 255\n`, { mode: 0o755 })
  const path = process.env.PATH
  process.env.PATH = `${bin}:${path}`
  t.after(() => {
    process.env.PATH = path
  })
  await assert.rejects(resolveRevision({ git: { url: 'ssh://git@git.invalid/x.git' } }, options), SourceError)
  const given = readFileSync(seen, 'utf8').split('\n')
  for (const option of ['IdentityFile=none', 'IdentitiesOnly=yes', 'IdentityAgent=none']) assert.ok(given.includes(option), option)
})

test('git: concurrent processes that fetch the same commits all succeed and leave no temporary files', async () => {
  const { directory, url, commit } = repository('busy', { a: '1' })
  const commits = [git(directory, 'rev-parse', 'HEAD'), commit({ a: '2' })]
  const children = await Promise.all(
    [0, 1, 2, 3].map(async number => {
      const child = fork(join(import.meta.dirname, 'fetch.testing.ts'), [url, commits[number % 2]!, emptyDirectory(), allowed, cacheDir], {
        stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
      })
      const [exitCode] = await once(child, 'exit')
      return exitCode
    }),
  )
  assert.deepEqual(children, [0, 0, 0, 0])
  const leftovers = readdirSync(join(cacheDir, 'git'), { recursive: true, encoding: 'utf8' }).filter(name =>
    /new-|lock-|use-|\.lock$/.test(name),
  )
  assert.deepEqual(leftovers, [])
})

test('git: fetches from a server that does not serve commits by hash', async () => {
  const { directory, url, commit } = repository('strict', { a: '1' })
  const first = git(directory, 'rev-parse', 'HEAD')
  commit({ a: '2' })
  git(directory, 'config', 'uploadpack.allowAnySHA1InWant', 'false')
  git(directory, 'config', 'protocol.version', '0')
  assert.equal(readFileSync(join(await fetchToDirectory({ git: { url } }, first), 'a'), 'utf8'), '1')
})

test('git: no keys and private directories remain (invariant 9)', () => {
  assert.deepEqual(readdirSync(cacheDir), ['git'])
})

test('reads credentials from a Secret, and rejects one without the required keys', () => {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  assert.equal(gitCredentials({ username: encode('u\n'), password: encode('p\n') }, 'a/b').password, 'p')
  assert.throws(
    () => gitCredentials({ token: encode('hidden') }, 'apps/git'),
    /spec\.source\.git\.secretRef: Secret apps\/git has keys token; it needs username and password/,
  )
})

test('a Run directory is private, replaces an earlier one, and is removed with read-only directories', async () => {
  const parent = join(base, 'private')
  write({ 'run-1/old': 'x' }, parent)
  const run = await createRunDirectory(parent, 'run-1')
  assert.equal(lstatSync(run.root).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(run.root).sort(), ['home', 'inputs', 'private', 'scratch', 'tmp', 'work'])
  write({ 'cache/mod/file': 'x' }, run.home)
  chmodSync(join(run.home, 'cache/mod'), 0o500)
  await run.remove()
  await run.remove()
  assert.deepEqual(readdirSync(parent), [])
  await assert.rejects(createRunDirectory(parent, '../x'), /runUid must be/)
})
