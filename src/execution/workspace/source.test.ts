import assert from 'node:assert/strict'
import { execFileSync, fork } from 'node:child_process'
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

async function refused(action: Promise<unknown>, reason: SourceErrorReason, says: RegExp): Promise<void> {
  await assert.rejects(action, error => {
    assert.ok(error instanceof SourceError, String(error))
    assert.equal(error.reason, reason, error.message)
    assert.match(error.message, says)
    return true
  })
}

async function take(source: StackSource, revision?: string): Promise<string> {
  return (await fetchSource(source, revision ?? (await resolveRevision(source, options)), emptyDirectory(), options)).directory
}

test('inline: files, directories, executables; the revision follows names and contents', async () => {
  const files = { 'main.tf': 'a', 'modules/x/run.sh': '#!/bin/sh\n', 'ü.txt': 'ü' }
  const directory = await take({ inline: { files } })
  for (const [name, content] of Object.entries(files)) assert.equal(readFileSync(join(directory, name), 'utf8'), content)
  assert.equal(lstatSync(join(directory, 'modules/x/run.sh')).mode & 0o100, 0o100)
  const revision = (more: Record<string, string>) => resolveRevision({ inline: { files: more } }, options)
  assert.equal(await revision({ a: '1', b: '2' }), await revision({ b: '2', a: '1' }))
  assert.notEqual(await revision({ a: '1', b: '2' }), await revision({ a: '12', b: '' }))
  assert.notEqual(await revision({ a: '1' }), await revision({ a1: '' }))
})

test('path: is copied with modes and inner symlinks, without what git and engines keep for themselves', async () => {
  const root = join(allowed, 'plain')
  write({ 'main.tf': 'x', 'sub/run.sh': '#!/bin/sh', '.git/config': 'x', 'sub/.terraform/big': 'x' }, root)
  chmodSync(join(root, 'sub/run.sh'), 0o755)
  symlinkSync('../main.tf', join(root, 'sub/link.tf'))
  const directory = await take({ path: { path: root } })
  assert.deepEqual(readdirSync(directory, { recursive: true }).sort(), ['main.tf', 'sub', 'sub/link.tf', 'sub/run.sh'])
  assert.equal(readFileSync(join(directory, 'sub/link.tf'), 'utf8'), 'x')
  assert.equal(lstatSync(join(directory, 'sub/run.sh')).mode & 0o777, 0o755)
})

test('path: changed since its revision was taken is refused, not silently taken', async () => {
  const root = join(allowed, 'changing')
  write({ a: '1' }, root)
  const revision = await resolveRevision({ path: { path: root } }, options)
  assert.equal(await resolveRevision({ path: { path: root } }, options), revision)
  write({ a: '22' }, root)
  assert.notEqual(await resolveRevision({ path: { path: root } }, options), revision)
  await refused(take({ path: { path: root } }, revision), 'SourceChanged', /changed before this Run/)
})

test('path: nothing outside of the allowed roots is read', async () => {
  write({ secret: 's' }, join(base, 'outside'))
  symlinkSync(join(base, 'outside'), join(allowed, 'door'))
  const resolve = (path: string, allowPaths = [allowed]) => resolveRevision({ path: { path } }, { ...options, allowPaths })
  await refused(
    resolve(join(base, 'outside')),
    'SourceNotAllowed',
    /spec\.source\.path\.path: ".*outside" is not below an allowed directory; allowed: below /,
  )
  await refused(resolve(join(base, 'no-such')), 'SourceNotAllowed', /not below an allowed/)
  await refused(resolve(join(allowed, 'door')), 'SourceNotAllowed', /not below an allowed/)
  await refused(resolve(join(allowed, 'door'), []), 'SourceNotAllowed', /--allow-path DIR/)
  await refused(resolve(join(allowed, 'no-such')), 'SourceNotFound', /does not exist on this worker/)
  await refused(resolve(`${allowed}-not`), 'SourceNotAllowed', /not below/)
})

for (const [name, target] of [
  ['absolute', '/etc/passwd'],
  ['upwards', '../../outside/secret'],
  ['roundabout', 'self/../../outside/secret'],
] as const) {
  test(`path: a symlink that leads out is refused: ${name}`, async () => {
    const root = join(allowed, `link-${name}`)
    write({ a: '1' }, root)
    symlinkSync('.', join(root, 'self'))
    symlinkSync(target, join(root, 'link'))
    await refused(
      resolveRevision({ path: { path: root } }, options),
      'SourceNotAllowed',
      /symlink "link" leads to .*must be relative and stay inside/,
    )
  })
}

test('path: pipes and the directory of the Runs itself are refused', async () => {
  write({ a: '1' }, join(allowed, 'pipe'))
  execFileSync('mkfifo', [join(allowed, 'pipe/fifo')])
  await refused(resolveRevision({ path: { path: join(allowed, 'pipe') } }, options), 'InvalidSource', /"fifo" is a socket, pipe or device/)
  await refused(
    fetchSource({ path: { path: base } }, 'x', emptyDirectory(), { ...options, allowPaths: [base] }),
    'SourceNotAllowed',
    /contains the directories of the worker's Runs/,
  )
})

test('git: branch, tag, annotated tag, HEAD and commit are found; exactly that commit is written', async () => {
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
    const root = await take({ git: { url } }, at)
    assert.equal(readFileSync(join(root, 'main.tf'), 'utf8'), content)
    assert.equal(existsSync(join(root, '.git')), false)
  }
  const stack = await take({ git: { url, directory: 'stacks/a' } }, second)
  assert.equal(readFileSync(join(stack, '../../modules/m/main.tf'), 'utf8'), 'm')
})

test('git: what is missing is named', async () => {
  const { url } = repository('missing', { a: '1' })
  const at = (more: object) => resolveRevision({ git: { url, ...more } }, options)
  await refused(at({ branch: 'nope' }), 'SourceNotFound', /spec\.source\.git\.branch: branch "nope" was not found in "file:/)
  await refused(at({ tag: 'nope' }), 'SourceNotFound', /tag "nope"/)
  await refused(take({ git: { url } }, 'b'.repeat(40)), 'SourceNotFound', /commit b{40} was not found/)
  await refused(
    take({ git: { url, directory: 'no/such' } }),
    'SourceNotFound',
    /spec\.source\.git\.directory: directory "no\/such" is not in commit/,
  )
  await refused(resolveRevision({ git: { url: `file://${allowed}/none.git` } }, options), 'SourceNotFound', /does not exist/)
  mkdirSync(join(allowed, 'empty'))
  await refused(resolveRevision({ git: { url: `file://${allowed}/empty` } }, options), 'SourceNotFound', /not a repository/)
  await refused(
    resolveRevision({ git: { url: 'https://127.0.0.1:1/x.git' } }, options),
    'SourceUnavailable',
    /cannot be reached|Failed to connect/,
  )
})

test('git: file URLs stay below the allowed roots, through symlinks and .git files too', async () => {
  const outside = join(base, 'outside-repository')
  mkdirSync(outside)
  git(outside, 'init', '-q')
  await refused(resolveRevision({ git: { url: `file://${outside}` } }, options), 'SourceNotAllowed', /not below an allowed directory/)
  symlinkSync(outside, join(allowed, 'repository-door'))
  await refused(resolveRevision({ git: { url: `file://${allowed}/repository-door` } }, options), 'SourceNotAllowed', /not below/)
  mkdirSync(join(allowed, 'git-file'))
  writeFileSync(join(allowed, 'git-file/.git'), `gitdir: ${outside}/.git\n`)
  await refused(resolveRevision({ git: { url: `file://${allowed}/git-file` } }, options), 'SourceNotAllowed', /not below/)
})

test('git: a symlink in the repository that leads out is refused', async () => {
  const { directory, url, commit } = repository('links', { a: '1' })
  symlinkSync('../../../../etc/passwd', join(directory, 'evil'))
  commit({ b: '2' })
  await refused(take({ git: { url } }), 'SourceNotAllowed', /spec\.source\.git: symlink "evil" leads to/)
})

test('git: a repository cannot run anything: no hooks, no filters, no helpers', async () => {
  const { url, commit } = repository('attributes', { a: '1' })
  commit({ '.gitattributes': '* filter=evil\n', '.lfsconfig': '[lfs]\n url = ext::x\n', b: '2' })
  assert.equal(readFileSync(join(await take({ git: { url } }), 'b'), 'utf8'), '2')
})

test('git: many processes that want the same commits at once all get them, and one commit is fetched once', async () => {
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
    /new-|lock-|\.lock$/.test(name),
  )
  assert.deepEqual(leftovers, [])
})

test('git: a server that hands out no commit by hash still works', async () => {
  const { directory, url, commit } = repository('strict', { a: '1' })
  const first = git(directory, 'rev-parse', 'HEAD')
  commit({ a: '2' })
  git(directory, 'config', 'uploadpack.allowAnySHA1InWant', 'false')
  git(directory, 'config', 'protocol.version', '0')
  assert.equal(readFileSync(join(await take({ git: { url } }, first), 'a'), 'utf8'), '1')
})

test('git: keys and directories are gone afterwards (invariant 9)', () => {
  assert.deepEqual(readdirSync(cacheDir), ['git'])
})

test('credentials are read from a Secret; one without them is told what it needs', () => {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  assert.equal(gitCredentials({ username: encode('u\n'), password: encode('p\n') }, 'a/b').password, 'p')
  assert.throws(
    () => gitCredentials({ token: encode('hidden') }, 'apps/git'),
    /spec\.source\.git\.secretRef: Secret apps\/git has keys token; it needs username and password/,
  )
})

test('a Run directory is private, replaces what was left, and goes with read-only parts', async () => {
  const parent = join(base, 'private')
  write({ 'run-1/old': 'x' }, parent)
  const run = await createRunDirectory(parent, 'run-1')
  assert.equal(lstatSync(run.root).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(run.root).sort(), ['home', 'scratch', 'tmp', 'work'])
  write({ 'cache/mod/file': 'x' }, run.home)
  chmodSync(join(run.home, 'cache/mod'), 0o500)
  await run.remove()
  await run.remove()
  assert.deepEqual(readdirSync(parent), [])
  await assert.rejects(createRunDirectory(parent, '../x'), /runUid must be/)
})
