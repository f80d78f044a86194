import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RootDirectory } from '../../kubernetes/util/index.ts'
import { ContentStore } from './content-store.ts'

type Fixture = {
  directory: string
  store(domain?: string, maxBytes?: number): ContentStore
  /** Adds a tree with one file of this content. */
  add(store: ContentStore, content: string | Buffer, key?: string): Promise<string>
}

function createFixture(t: TestContext): Fixture {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-content-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const directory = join(root, 'content')
  let count = 0
  return {
    directory,
    store: (domain = 'a', maxBytes) => new ContentStore({ directory, domain, maxBytes }),
    async add(store, content, key = 'host/acme/widget') {
      const source = join(root, `source-${++count}`)
      mkdirSync(join(source, 'sub'), { recursive: true })
      writeFileSync(join(source, 'sub/plugin'), content, { mode: 0o600 })
      return await store.add(key, new RootDirectory(root), `source-${count}`)
    },
  }
}

async function contentOf(store: ContentStore, digest: string, key = 'host/acme/widget'): Promise<string | undefined> {
  const found = await store.take(key, digest)
  try {
    return found && readFileSync(join(found.path, 'sub/plugin'), 'utf8')
  } finally {
    await found?.release()
  }
}
const trees = (directory: string) => globSync(join(directory, '*/**/h1-*/')).sort()

test('a tree is found by its digest, in its domain only, and can be read by every user', async t => {
  const { store, add, directory } = createFixture(t)
  const umask = process.umask(0o077)
  t.after(() => process.umask(umask))
  const digest = await add(store(), 'one')
  const other = await add(store(), 'two')
  assert.notEqual(digest, other)
  assert.deepEqual([await contentOf(store(), digest), await contentOf(store(), other)], ['one', 'two'])
  assert.equal(await contentOf(store('b'), digest), undefined)
  assert.equal(await contentOf(store(), digest, 'host/acme/other'), undefined)
  for (const path of [store().visible, ...globSync(join(directory, 'a/**/'), { exclude: ['**/*.seal'] })]) {
    assert.equal(statSync(path).mode & 0o777, statSync(path).isDirectory() ? 0o755 : 0o555, path)
  }
  assert.equal(statSync(directory).mode & 0o777, 0o700)
  assert.deepEqual(readdirSync(join(directory, 'staging')), [])
})

test('a digest of another form is not found, and a key that leaves the domain is rejected', async t => {
  const { store, add } = createFixture(t)
  const digest = await add(store(), 'one')
  for (const other of ['', 'h1:', 'zh:0000', `${digest}/..`, '../../x', digest.replace('h1', 'h2')])
    assert.equal(await store().take('host/acme/widget', other), undefined)
  for (const key of ['', '..', 'a/../../b', '/etc', 'a//b', 'h1-0000/x', '.hidden', 'a\0b'])
    await assert.rejects(store().take(key, digest), { name: 'RangeError', message: /^key must be names/ })
})

test('a tree that something changed is not found, and can be added again', async t => {
  const { store, add, directory } = createFixture(t)
  const file = () => join(trees(directory)[0] ?? '', 'sub/plugin')
  for (const { name, damage } of [
    { name: 'other content', damage: () => writeFileSync(file(), 'eno') },
    { name: 'a file more', damage: () => writeFileSync(`${file()}2`, '') },
    { name: 'a file less', damage: () => rmSync(file()) },
  ]) {
    const digest = await add(store(), 'one')
    assert.equal(await contentOf(store(), digest), 'one', name)
    if (existsSync(file())) chmodSync(file(), 0o755)
    damage()
    assert.equal(await contentOf(store(), digest), undefined, name)
    assert.deepEqual(
      [trees(directory), globSync(join(directory, '**/*.seal')), readdirSync(join(directory, 'staging'))],
      [[], [], []],
      name,
    )
  }
})

test('a tree that was touched, or was verified before the last start of the machine, is verified again', async t => {
  const { store, add, directory } = createFixture(t)
  const digest = await add(store(), 'one')
  const [tree = ''] = trees(directory)
  const seal = `${tree.replace(/\/$/, '')}.seal`
  const sealed = readFileSync(seal, 'utf8')
  utimesSync(join(tree, 'sub/plugin'), 1, 1)
  assert.equal(await contentOf(store(), digest), 'one')
  assert.notEqual(readFileSync(seal, 'utf8'), sealed, 'it is sealed again')
  // As after a power failure: what the file system shows is right, the content is not.
  chmodSync(join(tree, 'sub/plugin'), 0o755)
  writeFileSync(join(tree, 'sub/plugin'), 'eno')
  const { size, ino, mtimeNs, ctimeNs } = statSync(join(tree, 'sub/plugin'), { bigint: true })
  const files = [['sub/plugin', ...[size, ino, mtimeNs, ctimeNs].map(String)]]
  writeFileSync(seal, JSON.stringify({ bootId: JSON.parse(sealed).bootId, files }))
  assert.equal(await contentOf(store(), digest), 'eno', 'a seal of this start is trusted')
  writeFileSync(seal, JSON.stringify({ bootId: 'an earlier one', files }))
  assert.equal(await contentOf(store(), digest), undefined)
})

test('the least recently used trees of the largest domain are removed when all exceed the size, but none in use', async t => {
  const { store, add, directory } = createFixture(t)
  const block = (letter: string) => Buffer.alloc(100_000, letter)
  const [a, b] = [store('a', 450_000), store('b', 450_000)]
  const digests = { b1: await add(b, block('1')), a1: await add(a, block('2')), a2: await add(a, block('3')), a3: await add(a, block('4')) }
  for (const [at, path] of trees(directory).entries()) utimesSync(path, at, at)
  const used = await a.take('host/acme/widget', digests.a1)
  await contentOf(a, digests.a2)
  const a4 = await add(a, block('5'))
  const isThere = async (s: ContentStore, digest: string) => (await contentOf(s, digest)) !== undefined
  assert.deepEqual(
    [
      await isThere(b, digests.b1),
      await isThere(a, digests.a1),
      await isThere(a, digests.a2),
      await isThere(a, digests.a3),
      await isThere(a, a4),
    ],
    [true, true, true, false, true],
  )
  await used?.release()
  await add(store('b', 1), block('6'))
  assert.deepEqual([trees(directory), readdirSync(join(directory, 'a')), readdirSync(join(directory, 'staging'))], [[], [], []])
})

test('a process that ends while it adds a tree leaves nothing that is used, and what it leaves is removed', async t => {
  const { store, add, directory } = createFixture(t)
  const source = join(directory, '..', 'large')
  mkdirSync(source)
  writeFileSync(join(source, 'plugin'), Buffer.alloc(20_000_000))
  const child = fork(join(import.meta.dirname, 'content-store.testing.ts'), [directory, 'a', 'host/large', source, 'crash'])
  t.after(() => child.kill('SIGKILL'))
  const staging = join(directory, 'staging')
  assert.deepEqual(await once(child, 'exit'), [null, 'SIGKILL'])
  assert.deepEqual(trees(directory), [])
  const [left = ''] = readdirSync(staging)
  await add(store(), 'one')
  assert.deepEqual(readdirSync(staging), [left], 'for an hour it could be of a process that cannot be seen')
  utimesSync(join(staging, left), 1, 1)
  await add(store(), 'two')
  assert.deepEqual(readdirSync(staging), [])
})

test('several processes add and use the same tree at the same time', async t => {
  const { directory, store } = createFixture(t)
  const source = join(directory, '..', 'common')
  mkdirSync(source)
  writeFileSync(join(source, 'plugin'), Buffer.alloc(2_000_000, 'x'))
  const children = Array.from({ length: 4 }, () =>
    fork(join(import.meta.dirname, 'content-store.testing.ts'), [directory, 'a', 'host/common', source]),
  )
  const results = await Promise.all(children.map(child => resultOf(child)))
  const [digest] = results
  assert.ok(digest)
  assert.deepEqual(new Set(results), new Set([digest]))
  assert.equal(trees(directory).length, 1)
  assert.deepEqual(readdirSync(join(directory, 'staging')), [])
  const found = await store().take('host/common', digest)
  await found?.release()
  assert.equal(readdirSync(join(directory, 'a/host/common')).length, 2, 'the tree and its seal')
})

/** The digest that the process has added and taken five times; undefined if it failed. */
async function resultOf(child: ChildProcess): Promise<string | undefined> {
  const message = once(child, 'message').then(([value]) => value as string)
  const exit = once(child, 'exit').then(() => undefined)
  const result = await Promise.race([message, exit])
  await exit
  return result
}

test('a lock of a process that has ended does not hide a tree', async t => {
  const { store, add, directory } = createFixture(t)
  const digest = await add(store(), 'one')
  const [tree = ''] = trees(directory)
  writeFileSync(`${tree.replace(/\/$/, '')}.lock`, '999999999 1')
  assert.equal(await contentOf(store(), digest), 'one')
})

test('records are kept per domain', async t => {
  const { store } = createFixture(t)
  await store('a').writeRecord('providers of x', 'of a')
  await store('a').writeRecord('providers of x', 'of a, again')
  await store('b').writeRecord('providers of x', 'of b')
  const read = (domain: string, name: string) => store(domain).readRecord(name)
  assert.deepEqual([await read('a', 'providers of x'), await read('b', 'providers of x')], ['of a, again', 'of b'])
  assert.equal(await read('a', 'providers of y'), undefined)
  await assert.rejects(store('a').writeRecord('x', 'x'.repeat(300_000)), RangeError)
})
