import { deepEqual, equal, match } from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { DependencyStore, type StoredTree } from '../../execution/dependencies/index.ts'
import { ContentStore } from '../../execution/workspace/index.ts'
import { RootDirectory, sha256 } from '../../kubernetes/util/index.ts'

const launcher = join(import.meta.dirname, '../../../bin/oarlock.js')
const provider = 'registry.opentofu.org/acme/widget/1.2.3/linux_amd64'
const plugin = 'pulumi/default/random/4.21.1/linux-x64'
const dayMs = 24 * 3_600_000
const sha512 = (text: string) => hash('sha512', text)

/** A cache directory with an old tree, a tree in use, one of another domain, and a provider. */
async function setUp(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const cacheDir = join(base, 'data', 'cache')
  let runs = 0
  const add = async (name: string, domain: string, days: number): Promise<StoredTree> => {
    const run = join(base, `run-${++runs}`)
    mkdirSync(join(run, 'node_modules'), { recursive: true })
    writeFileSync(join(run, 'node_modules/index.js'), name.repeat(100_000))
    const tree = await new DependencyStore({ directory: join(cacheDir, 'dependencies'), domain }).add({
      ...{ digest: sha256(name), inputs: [], manager: 'npm', runName: 'r', installSeconds: 1, files: new RootDirectory(run), produced: [] },
      trees: [{ place: { base: 'source', path: 'node_modules' }, path: join(run, 'node_modules'), checkLink: ({ target }) => target }],
      transfer: 'Move',
    })
    const at = new Date(Date.now() - days * dayMs)
    utimesSync(tree.path, at, at)
    return tree
  }
  const old = await add('a', 'namespace-team', 9)
  const used = await add('b', 'namespace-team', 10)
  const other = await add('c', 'namespace-other', 1)
  await old.release()
  await other.release()
  t.after(() => used.release())
  mkdirSync(join(base, 'plugin'))
  writeFileSync(join(base, 'plugin/p'), 'x')
  const content = new ContentStore({ directory: join(cacheDir, 'content'), domain: 'shared' })
  const checksum = await content.add(provider, new RootDirectory(base), 'plugin')
  const addPlugin = () => content.add(plugin, new RootDirectory(base), 'plugin')
  const oarlock = (...args: string[]) => {
    const env = { ...process.env, NO_COLOR: '1', OARLOCK_DATA: join(base, 'data'), OARLOCK_CACHE_DIR: '', TMPDIR: base }
    const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, 'cache', ...args], { encoding: 'utf8', env })
    return { status, stdout, stderr }
  }
  const isProviderThere = async () => {
    const found = await content.take(provider, checksum)
    await found?.release()
    return found !== undefined
  }
  return { base, cacheDir, old, used, other, content, checksum, oarlock, isProviderThere, addPlugin }
}

test('cache list prints what is cached, the most recently used first, within 80 columns', async t => {
  const { cacheDir, oarlock } = await setUp(t)
  const { status, stdout, stderr } = oarlock('list')
  equal(status, 0, stderr)
  const lines = stdout.trim().split('\n')
  match(lines[0]!, /^DIGEST +PACKAGES +FILES +SIZE +USED +DOMAIN$/)
  match(lines[1]!, /^[0-9a-f]{12} +acme\/widget 1\.2\.3 +1 +4 KiB +\d+m?s +shared$/)
  match(lines[2]!, new RegExp(`^${sha256('c').slice(0, 12)} +npm +1 +[\\d.]+ KiB +1d +namespace-other$`))
  match(lines[3]!, new RegExp(`^${sha256('a').slice(0, 12)} +npm +1 +[\\d.]+ KiB +9d +namespace-team$`))
  match(lines[4]!, new RegExp(`^${sha256('b').slice(0, 12)} +npm +1 +[\\d.]+ KiB +in use +namespace-team$`))
  deepEqual(
    lines.filter(line => line.length > 80),
    [],
  )
  match(stderr, new RegExp(`^${cacheDir}: 4 items, [\\d.]+ KiB, 1 in use$`, 'm'))
})

test('cache list -o json has the digests, paths and domains of one domain', async t => {
  const { cacheDir, old, used, oarlock } = await setUp(t)
  const { items } = JSON.parse(oarlock('list', '--cache-dir', cacheDir, '--domain', 'namespace-team', '-o', 'json').stdout)
  deepEqual(
    items.map(({ kind, digest, name, inUse, path, directory }: Record<string, unknown>) => ({
      kind,
      digest,
      name,
      inUse,
      path,
      directory,
    })),
    [
      { kind: 'Dependencies', digest: sha256('a'), name: 'npm', inUse: false, path: old.path, directory: cacheDir },
      { kind: 'Dependencies', digest: sha256('b'), name: 'npm', inUse: true, path: used.path, directory: cacheDir },
    ],
  )
})

test('cache list names a plugin of Pulumi as one, and cache prune removes it', async t => {
  const { cacheDir, content, checksum, oarlock, addPlugin } = await setUp(t)
  equal(await addPlugin(), checksum)
  const kinds = () =>
    JSON.parse(oarlock('list', '-o', 'json').stdout)
      .items.filter(({ domain }: { domain: string }) => domain === 'shared')
      .map(({ kind, name, digest }: Record<string, unknown>) => ({ kind, name, digest }))
      .sort((a: { kind: string }, b: { kind: string }) => (a.kind < b.kind ? -1 : 1))
  deepEqual(kinds(), [
    { kind: 'Plugin', name: plugin, digest: checksum },
    { kind: 'Provider', name: provider, digest: checksum },
  ])
  match(oarlock('list').stdout, /^[0-9a-f]{12} +plugin random 4\.21\.1 +1 +4 KiB +\d+m?s +shared$/m)
  oarlock('prune', '--max-size', '0', '--cache-dir', cacheDir)
  deepEqual(kinds(), [])
  equal(await content.take(plugin, checksum), undefined)
})

test('the archives that all trust domains share are one item of cache list, and cache prune removes them', async t => {
  const { cacheDir, oarlock } = await setUp(t)
  const directory = join(cacheDir, 'dependencies', 'archives')
  for (const digest of [sha512('x'), sha512('y')]) {
    mkdirSync(join(directory, digest.slice(0, 2)), { recursive: true })
    writeFileSync(join(directory, digest.slice(0, 2), `${digest}-01234567`), 'z'.repeat(1_024))
  }
  match(oarlock('list').stdout, /^- +archives of npm +2 +2 KiB +\d+m?s +all$/m)
  const archives = () => JSON.parse(oarlock('list', '-o', 'json').stdout).items.filter(({ kind }: { kind: string }) => kind === 'Archives')
  deepEqual(
    archives().map(({ domain, files, bytes, path }: Record<string, unknown>) => ({ domain, files, bytes, path })),
    [{ domain: 'all', files: 2, bytes: 2_048, path: directory }],
  )
  equal(oarlock('prune', '--max-size', '0', '--domain', 'namespace-team').status, 0)
  equal(archives().length, 1)
  equal(oarlock('prune', '--max-size', '0').status, 0)
  deepEqual(archives(), [])
  deepEqual(
    readdirSync(directory).flatMap(prefix => readdirSync(join(directory, prefix))),
    [],
  )
})

test('cache prune --older-than removes what is older, keeps what is in use, and prints what was freed', async t => {
  const { old, used, other, oarlock, isProviderThere } = await setUp(t)
  const dry = oarlock('prune', '--older-than', '7d', '--dry-run')
  match(dry.stderr, /: 1 item would be removed, [\d.]+ KiB; kept: 3 items, [\d.]+ KiB, 1 in use$/m)
  equal(existsSync(old.path), true)
  const { status, stdout, stderr } = oarlock('prune', '--older-than', '7d')
  equal(status, 0, stderr)
  match(stdout, new RegExp(`^${sha256('a').slice(0, 12)} `, 'm'))
  match(stderr, /: 1 item removed, [\d.]+ KiB; kept: 3 items, [\d.]+ KiB, 1 in use$/m)
  deepEqual(
    [old, used, other].map(({ path }) => existsSync(path)),
    [false, true, true],
  )
  equal(await isProviderThere(), true)
})

test('cache prune --max-size 0 removes providers too, and reports the bytes; a tree in use stays until its Run has ended', async t => {
  const { old, used, other, oarlock, isProviderThere, cacheDir } = await setUp(t)
  const { removed, freedBytes } = JSON.parse(oarlock('prune', '--max-size', '0', '-o', 'json').stdout)
  equal(removed.length, 3)
  equal(
    freedBytes,
    removed.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0),
  )
  deepEqual(
    [old, used, other].map(({ path }) => existsSync(path)),
    [false, true, false],
  )
  equal(await isProviderThere(), false)
  equal(existsSync(join(cacheDir, 'content/shared/registry.opentofu.org')), false)
  await used.release()
  oarlock('prune', '--max-size', '0')
  equal(existsSync(used.path), false)
})

for (const { name, args, code, message } of [
  { name: 'prune without a limit', args: ['prune'], code: 2, message: /--older-than or --max-size is required/ },
  { name: 'an invalid size', args: ['prune', '--max-size', 'ten'], code: 2, message: /A size >= 0 is expected, such as 10Gi/ },
  {
    name: 'an unknown trust domain',
    args: ['list', '--domain', 'x'],
    code: 3,
    message: /trust domain "x"[\s\S]*hint: cached are packages of name/,
  },
  { name: 'a directory that does not exist', args: ['list', '--cache-dir', '/nowhere'], code: 7, message: /\/nowhere does not exist/ },
  {
    name: 'two directories',
    args: ['list', '--cache-dir', '/a', '--data', '/b'],
    code: 2,
    message: /--data and --cache-dir exclude each other/,
  },
]) {
  test(`cache: ${name} exits with ${code}`, async t => {
    const { oarlock } = await setUp(t)
    const { status, stderr } = oarlock(...args)
    match(stderr, message)
    equal(status, code)
  })
}
