import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RootDirectory, sha256, UnexpectedFileError } from '../../../kubernetes/util/index.ts'
import { DependencyError } from '../dependency-error.ts'
import { DependencyStore, type NewTree, type StoredTree } from './dependency-store.ts'
import { listDependencies } from './evict-dependencies.ts'
import { removeOldLocks, tryInstallLock } from './install-lock.ts'
import { startInstaller } from './start-installer.testing.ts'

const digestOf = (name: string) => sha256(name)
const keepLink = ({ target }: { target: string }) => target

function setUp(t: TestContext, maxBytes?: number) {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const directory = join(base, 'store')
  const store = new DependencyStore({ directory, domain: 'test', maxBytes, recheckMs: 0 })
  let runs = 0
  /** A tree in the directory of a new Run. */
  const install = (files: Record<string, string> = { 'a/index.js': 'a' }): { run: string; modules: string } => {
    const run = join(base, `run-${++runs}`)
    const modules = join(run, 'work/node_modules')
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(modules, path, '..'), { recursive: true })
      writeFileSync(join(modules, path), text)
    }
    return { run, modules }
  }
  const newTree = (name: string, { run, modules }: { run: string; modules: string }, more: Partial<NewTree> = {}): NewTree => ({
    ...{ digest: digestOf(name), inputs: [], manager: 'npm', runName: 'r-1', installSeconds: 3, files: new RootDirectory(run) },
    ...{ produced: [], transfer: 'Move' },
    trees: [{ place: { base: 'source', path: 'node_modules' }, path: modules, checkLink: keepLink }],
    ...more,
  })
  const add = async (name: string, from = install(), more: Partial<NewTree> = {}) => await store.add(newTree(name, from, more))
  return { base, directory, store, install, newTree, add }
}

const treeOf = (tree: StoredTree | undefined) => DependencyStore.treePath(tree!, 0)

for (const transfer of ['Move', 'Copy'] as const) {
  test(`a tree is stored by ${transfer} with its files, links, modes and times, and read again`, async t => {
    const { store, install, add } = setUp(t)
    const from = install({ 'a/index.js': 'a', 'a/bin': '#!/bin/sh', 'empty/x': '' })
    rmSync(join(from.modules, 'empty/x'))
    chmodSync(join(from.modules, 'a/bin'), 0o4777)
    utimesSync(join(from.modules, 'a/index.js'), 1_000, 1_000)
    symlinkSync('../a/bin', join(from.modules, 'a/link'))
    const added = await add('x', from, { transfer })
    await added.release()
    equal(existsSync(from.modules), transfer === 'Copy')
    const found = await store.acquire(digestOf('x'))
    const tree = treeOf(found)
    deepEqual(readdirSync(tree, { recursive: true }).sort(), ['a', 'a/bin', 'a/index.js', 'a/link', 'empty'])
    equal(statSync(join(tree, 'a/bin')).mode & 0o7777, 0o755)
    equal(statSync(join(tree, 'a/index.js')).mode & 0o7777, 0o644)
    equal(statSync(join(tree, 'a/index.js')).mtimeMs, 1_000_000)
    equal(readlinkSync(join(tree, 'a/link')), '../a/bin')
    deepEqual(found!.record.trees, [{ base: 'source', path: 'node_modules' }])
    await found!.release()
  })
}

test('a file that has a further name outside of the tree does not change with it', async t => {
  const { install, add, base } = setUp(t)
  const from = install()
  linkSync(join(from.modules, 'a/index.js'), join(base, 'kept'))
  const tree = await add('x', from)
  writeFileSync(join(base, 'kept'), 'changed')
  equal(readFileSync(join(treeOf(tree), 'a/index.js'), 'utf8'), 'a')
  await tree.release()
})

test('a link that is rejected, a pipe and a tree that is too large are not stored', async t => {
  const { install, add, directory } = setUp(t, 20_000)
  const linked = install()
  symlinkSync('/etc/passwd', join(linked.modules, 'l'))
  const checkLink = ({ path }: { path: string }) => {
    throw new UnexpectedFileError(path, 'leads out of the source')
  }
  const trees: NewTree['trees'] = [{ place: { base: 'source', path: 'node_modules' }, path: linked.modules, checkLink }]
  await rejects(add('x', linked, { trees }), /l leads out of the source/)
  const piped = install()
  execFileSync('mkfifo', [join(piped.modules, 'pipe')])
  await rejects(add('x', piped), /pipe is neither a file, a directory nor a symlink/)
  await rejects(add('x', install({ big: 'x'.repeat(30_000) })), /big does not fit: the tree is larger than the store/)
  deepEqual(readdirSync(join(directory, 'staging')), [])
  deepEqual(await listDependencies(directory), [])
})

for (const { name, damage, problem } of [
  {
    name: 'a file with other content of the same size',
    damage: (tree: string) => writeFileSync(join(tree, 'a/index.js'), 'b'),
    problem: /it has changed: t\/0\/a\/index\.js$/,
  },
  {
    name: 'a truncated file',
    damage: (tree: string) => truncateSync(join(tree, 'a/index.js')),
    problem: /it has changed: t\/0\/a\/index\.js$/,
  },
  { name: 'a removed file', damage: (tree: string) => rmSync(join(tree, 'a/index.js')), problem: /it has changed: t\/0\/a\/index\.js$/ },
  { name: 'a new file', damage: (tree: string) => writeFileSync(join(tree, 'new'), ''), problem: /it has changed: t\/0\/new$/ },
  {
    name: 'an executable bit',
    damage: (tree: string) => chmodSync(join(tree, 'a/index.js'), 0o755),
    problem: /it has changed: t\/0\/a\/index\.js$/,
  },
  {
    name: 'a list of files that changed',
    damage: (tree: string) => writeFileSync(join(tree, '../../files'), ''),
    problem: /its list of files has changed/,
  },
  {
    name: 'a record that is not valid',
    damage: (tree: string) => writeFileSync(join(tree, '../../record.json'), '{'),
    problem: /its record is missing/,
  },
]) {
  test(`a tree with ${name} is found damaged, removed, and can be stored again`, async t => {
    const { store, add } = setUp(t)
    const added = await add('x')
    await added.release()
    damage(treeOf(added))
    const problems: string[] = []
    equal(await store.acquire(digestOf('x'), found => problems.push(found)), undefined)
    match(problems.join(), problem)
    equal(existsSync(added.path), false)
    const again = await add('x')
    await again.release()
    const found = await store.acquire(digestOf('x'))
    equal(readFileSync(join(treeOf(found), 'a/index.js'), 'utf8'), 'a')
    await found!.release()
  })
}

test('a damaged tree that a Run uses keeps its files until that Run has ended', async t => {
  const { store, add, directory } = setUp(t)
  const used = await add('x')
  writeFileSync(join(treeOf(used), 'a/index.js'), 'changed')
  equal(await store.acquire(digestOf('x')), undefined)
  equal(readdirSync(join(directory, 'staging')).length, 1)
  await used.release()
})

test('a damaged tree is not removed while another process installs its digest', async t => {
  const { store, add, base } = setUp(t)
  const added = await add('x')
  await added.release()
  renameSync(added.path, join(base, 'entry'))
  const locked = await store.acquireOrLock(digestOf('x'), { signal: t.signal })
  ok('lock' in locked)
  renameSync(join(base, 'entry'), added.path)
  writeFileSync(join(treeOf(added), 'a/index.js'), 'b')
  equal(await store.acquire(digestOf('x')), undefined)
  equal(existsSync(added.path), true)
  await locked.lock.release()
  equal(await store.acquire(digestOf('x')), undefined)
  equal(existsSync(added.path), false)
})

test('a tree that has replaced a damaged one while that was read is not removed', async t => {
  const { store, add, base } = setUp(t)
  const added = await add('x')
  await added.release()
  renameSync(added.path, join(base, 'intact'))
  mkdirSync(added.path)
  // Its reader waits for a writer.
  execFileSync('mkfifo', [join(added.path, 'record.json')])
  const taking = store.acquire(digestOf('x'))
  const writer = await open(join(added.path, 'record.json'), 'w')
  renameSync(added.path, join(base, 'damaged'))
  renameSync(join(base, 'intact'), added.path)
  await writer.writeFile('{')
  await writer.close()
  const found = await taking
  equal(readFileSync(join(treeOf(found), 'a/index.js'), 'utf8'), 'a')
  await found!.release()
})

test('the files of a tree are compared at most once in the given time', async t => {
  const { add, directory } = setUp(t)
  const added = await add('x')
  await added.release()
  writeFileSync(join(treeOf(added), 'a/index.js'), 'b')
  const store = new DependencyStore({ directory, domain: 'test', recheckMs: 60_000 })
  const found = await store.acquire(digestOf('x'))
  await found!.release()
  const earlier = Date.now() / 1_000 - 61
  utimesSync(join(added.path, 'seal'), earlier, earlier)
  equal(await store.acquire(digestOf('x')), undefined)
})

test('after a restart of the machine, the content is verified again', async t => {
  const { store, add } = setUp(t)
  const added = await add('x')
  await added.release()
  const seal = join(added.path, 'seal')
  const sealed = readFileSync(seal, 'utf8')
  writeFileSync(seal, sealed.replace(/^\S+/, 'another-boot'))
  const found = await store.acquire(digestOf('x'))
  await found!.release()
  equal(readFileSync(seal, 'utf8'), sealed)
})

test('trees are found in their own domain only', async t => {
  const { add, directory } = setUp(t)
  const added = await add('x')
  await added.release()
  equal(await new DependencyStore({ directory, domain: 'other' }).acquire(digestOf('x')), undefined)
})

test('the least recently used tree of the largest domain is removed at the limit, and never one that is in use', async t => {
  const { store, add, install, directory } = setUp(t, 300_000)
  const big = () => install({ big: 'x'.repeat(120_000) })
  const used = await add('used', big())
  const old = await add('old', big())
  await old.release()
  utimesSync(used.path, 1, 1)
  utimesSync(old.path, 2, 2)
  const newest = await add('newest', big())
  await newest.release()
  deepEqual(
    (await listDependencies(directory)).map(({ digest }) => digest),
    [digestOf('used'), digestOf('newest')],
  )
  await used.release()
  const again = await store.acquire(digestOf('used'))
  ok(again)
  await again.release()
})

test('of six processes that need one digest, one installs it and the others wait', async t => {
  const { base, directory } = setUp(t)
  const log = join(base, 'log')
  const results = await Promise.all(Array.from({ length: 6 }, () => startInstaller(directory, digestOf('x'), log)))
  deepEqual(results.map(({ did }) => did).sort(), ['found', 'found', 'found', 'found', 'found', 'installed'])
  equal(readFileSync(log, 'utf8').trim().split('\n').length, 1)
  ok(results.some(({ waits }) => (waits ?? 0) > 0))
})

test('when an installer is killed, one of those that wait takes over', async t => {
  const { base, directory, store } = setUp(t)
  const killed = startInstaller(directory, digestOf('x'), join(base, 'log'), 0)
  const others = [startInstaller(directory, digestOf('x'), join(base, 'log')), startInstaller(directory, digestOf('x'), join(base, 'log'))]
  await killed
  deepEqual(
    (await Promise.all(others)).map(({ exitCode }) => exitCode),
    [0, 0],
  )
  const tree = await store.acquire(digestOf('x'), undefined, { isThorough: true })
  equal(readdirSync(treeOf(tree)).length, 301)
  await tree!.release()
})

test('a process that waits receives what the installer reports, and stops when it is aborted', async t => {
  const { store } = setUp(t)
  const first = await store.acquireOrLock(digestOf('x'), { signal: new AbortController().signal })
  ok('lock' in first)
  await first.lock.report({ run: 'r-1', step: 'npm ci', sinceMs: 5 })
  const abort = new AbortController()
  const reports: unknown[] = []
  const waiting = store.acquireOrLock(digestOf('x'), {
    signal: abort.signal,
    onWaiting: progress => {
      reports.push(progress)
      abort.abort(new Error('canceled'))
    },
  })
  await rejects(waiting, /canceled|aborted/)
  deepEqual(reports, [{ run: 'r-1', step: 'npm ci', sinceMs: 5 }])
  await first.lock.release()
  const second = await store.acquireOrLock(digestOf('x'), { signal: new AbortController().signal })
  ok('lock' in second)
  await second.lock.release()
})

test('a wait that is too long fails, and names the installer', async t => {
  const { store } = setUp(t)
  const { signal } = new AbortController()
  const first = await store.acquireOrLock(digestOf('x'), { signal })
  ok('lock' in first)
  await first.lock.report({ run: 'r-1', step: 'npm ci', sinceMs: Date.now() - 7_000 })
  await rejects(store.acquireOrLock(digestOf('x'), { signal, maxWaitMs: 300 }), {
    reason: 'DependencyInstallFailed',
    retryable: true,
    message:
      /^waited 0 s for Run r-1, which installs the same dependencies \(npm ci, since \d+ s\); cancel that Run if it makes no progress$/,
  })
  await first.lock.release()
})

test('whatever a trust domain locks, another one installs', async t => {
  const { directory } = setUp(t)
  const { signal } = new AbortController()
  const hostile = new DependencyStore({ directory, domain: 'hostile' })
  const held = []
  // Enough to hold every lock file of the domain.
  for (let number = 0; number < 3_000; number++) {
    const found = await hostile.acquireOrLock(digestOf(`${number}`), { signal, maxWaitMs: 0 }).catch(() => undefined)
    if (found && 'lock' in found) held.push(found.lock)
  }
  equal(held.length, 256)
  const other = await new DependencyStore({ directory, domain: 'other' }).acquireOrLock(digestOf('1'), { signal, maxWaitMs: 0 })
  ok('lock' in other)
  await other.lock.release()
  for (const lock of held) await lock.release()
})

test('locks that were not used for long are removed, with the directory of their domain', async t => {
  const { directory } = setUp(t)
  for (const domain of ['old', 'new']) await tryInstallLock(join(directory, 'locks'), domain, digestOf('x'))!()
  const [name = ''] = readdirSync(join(directory, 'locks/old'))
  utimesSync(join(directory, 'locks/old', name), 1, 1)
  await removeOldLocks(join(directory, 'locks'), 60_000)
  deepEqual(readdirSync(join(directory, 'locks')), ['new'])
})

test('a full disk is reported with what to do, and leaves nothing', async t => {
  if (process.getuid?.() !== 0) return t.skip('mounting a small file system needs root')
  const { base, install, newTree } = setUp(t)
  const small = join(base, 'small')
  mkdirSync(small)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', small], { stdio: 'pipe' })
  } catch (error) {
    return t.skip(`no file system can be mounted: ${(error as Error).message}`)
  }
  const store = new DependencyStore({ directory: join(small, 'store'), domain: 'test' })
  const files = Object.fromEntries(Array.from({ length: 40 }, (_, number) => [`f${number}`, 'x'.repeat(10_000)]))
  try {
    await rejects(store.add(newTree('x', install(files))), error => {
      ok(error instanceof DependencyError)
      equal(error.reason, 'DependencyStoreFailed')
      match(
        error.message,
        /^dependencies cannot be stored: the disk of .* is full: free some space, or reduce OARLOCK_DEPENDENCY_CACHE_SIZE$/,
      )
      return true
    })
    deepEqual(readdirSync(join(small, 'store/staging')), [])
    equal(await store.acquire(digestOf('x')), undefined)
  } finally {
    execFileSync('umount', [small])
  }
})

test('too many open files are reported with what to do', async t => {
  const { base, directory, add } = setUp(t)
  const added = await add('x')
  await added.release()
  const script = `
    import { openSync } from 'node:fs'
    import { DependencyStore } from ${JSON.stringify(join(import.meta.dirname, 'dependency-store.ts'))}
    const store = new DependencyStore({ directory: ${JSON.stringify(directory)}, domain: 'test' })
    await store.acquire('0'.repeat(64))
    try { for (;;) openSync('/dev/null', 'r') } catch {}
    await store.acquireOrLock('1'.repeat(64), { signal: new AbortController().signal }).catch(error => console.log(error.reason, error.message))
    await store.acquire(${JSON.stringify(digestOf('x'))}).catch(error => console.log(error.reason, error.message))`
  const file = join(base, 'exhaust.mjs')
  writeFileSync(file, script)
  const output = execFileSync('sh', ['-c', 'ulimit -n 64; exec "$0" "$1"', process.execPath, file], { encoding: 'utf8' })
  const line = /^DependencyStoreFailed dependencies cannot be stored: the process has its maximum of 64 open files: raise its limit/
  for (const text of output.trim().split('\n')) match(text, line)
  equal(output.trim().split('\n').length, 2, output)
  ok(lstatSync(added.path).isDirectory())
})
