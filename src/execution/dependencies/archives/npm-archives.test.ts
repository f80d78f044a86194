import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { RootDirectory } from '../../../kubernetes/util/index.ts'
import { createStore, startRun } from '../install.testing.ts'
import { installDependencies } from '../install-dependencies.ts'
import { SourceFiles } from '../source-files.ts'
import type { DependencyStoreOptions } from '../store/dependency-store.ts'
import { ArchiveStore } from './archive-store.ts'
import { lockedArchives } from './locked-archives.ts'
import { isAnonymousInstall, NpmArchives } from './npm-archives.ts'

const temporary = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
after(() => rmSync(temporary, { recursive: true }))
const noNpm = existsSync('/usr/bin/npm') ? false : 'needs npm in /usr/bin'
const sha512 = (data: string | Buffer, encoding: 'hex' | 'base64') => createHash('sha512').update(data).digest(encoding)
const integrityOf = (data: string | Buffer) => `sha512-${sha512(data, 'base64')}`
const running = new AbortController().signal
const publicUrl = 'https://registry.npmjs.org/dep/-/dep-1.0.0.tgz'

function packPackage(text: string): Buffer {
  const directory = mkdtempSync(join(temporary, 'pack-'))
  mkdirSync(join(directory, 'package'))
  writeFileSync(join(directory, 'package/package.json'), JSON.stringify({ name: 'dep', version: '1.0.0' }))
  writeFileSync(join(directory, 'package/index.js'), `module.exports = ${JSON.stringify(text)}`)
  return execFileSync('tar', ['-C', directory, '-cz', 'package'])
}

function project(archive: Buffer, name: string, resolved = publicUrl): Record<string, string> {
  const root = { name, version: '1.0.0', dependencies: { dep: '1.0.0' } }
  const packages = { '': root, 'node_modules/dep': { version: '1.0.0', resolved, integrity: integrityOf(archive) } }
  return {
    'package.json': JSON.stringify(root),
    'package-lock.json': JSON.stringify({ name, version: '1.0.0', lockfileVersion: 3, requires: true, packages }),
    'index.js': 'console.log(require("dep"))',
  }
}

/** A registry that serves this archive under any path; npm asks it instead of the one that the lock file names. */
async function startRegistry(t: TestContext, archive: () => Buffer) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    response.end(archive())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

async function install(t: TestContext, store: DependencyStoreOptions, files: Record<string, string>, registry: string) {
  const env = { npm_config_registry: registry, npm_config_fetch_retries: '0' }
  const run = await startRun(t, { level: 'Process', store, files, env, workerEnvNames: Object.keys(env) })
  const result = await installDependencies(run.context, { directory: run.directory.work })
  equal(result?.source, 'Installed')
  return { log: run.log, output: (await run.run('node index.js')).lines }
}

const other = (store: DependencyStoreOptions): DependencyStoreOptions => ({ ...store, domain: 'other' })

test('another trust domain installs from archives that its lock file names, without downloading them', { skip: noNpm }, async t => {
  const archive = packPackage('dep')
  const { requests, url } = await startRegistry(t, () => archive)
  const store = createStore()
  deepEqual((await install(t, store, project(archive, 'a'), url)).output, ['dep'])
  equal(requests.length, 1)
  const second = await install(t, other(store), project(archive, 'b'), url)
  deepEqual(second.output, ['dep'])
  match(second.log.join('\n'), /1 archives of the lock file are on this host/)
  equal(requests.length, 1, requests.join())
})

test('an archive that is not from the public registry is not shared with another trust domain', { skip: noNpm }, async t => {
  const archive = packPackage('private')
  const { requests, url } = await startRegistry(t, () => archive)
  const store = createStore()
  const resolved = `${url}dep/-/dep-1.0.0.tgz`
  await install(t, store, project(archive, 'a', resolved), url)
  await install(t, other(store), project(archive, 'b', resolved), url)
  equal(requests.length, 2)
})

function setUp(t: TestContext) {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(base, { recursive: true }))
  const directory = join(base, 'store')
  let runs = 0
  /** A Run of a domain whose lock file names `archive`; npm has left `cached` in its cache. */
  const openRun = async (
    domain: string,
    archive: string,
    { cached, isAnonymous = true }: { cached?: string; isAnonymous?: boolean } = {},
  ) => {
    const root = join(base, `run-${runs++}`)
    const home = join(root, 'home')
    const digest = sha512(archive, 'hex')
    const path = join(home, '.npm/_cacache/content-v2/sha512', digest.slice(0, 2), digest.slice(2, 4), digest.slice(4))
    mkdirSync(join(root, 'work'), { recursive: true })
    writeFileSync(join(root, 'work/package-lock.json'), project(Buffer.from(archive), 'p')['package-lock.json']!)
    if (cached !== undefined) {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, cached)
    }
    const source = new SourceFiles(new RootDirectory(root), join(root, 'work'))
    const archives = await NpmArchives.open({ directory, domain, source, root: '', home, isAnonymous })
    return { archives, path }
  }
  return { directory, openRun }
}

test('what a program has left under the digest of another archive is not stored', async t => {
  const { openRun } = setUp(t)
  equal(await (await openRun('hostile', 'good', { cached: 'evil' })).archives.collect(running), 0)
  const { archives, path } = await openRun('victim', 'good')
  deepEqual([await archives.provide(running), existsSync(path)], [0, false])
})

test('a Run gets only the archives that its own lock file names', async t => {
  const { openRun } = setUp(t)
  equal(await (await openRun('hostile', 'evil', { cached: 'evil' })).archives.collect(running), 1)
  const { archives, path } = await openRun('victim', 'good')
  deepEqual([await archives.provide(running), existsSync(path)], [0, false])
  const named = await openRun('victim', 'evil')
  deepEqual([await named.archives.provide(running), readFileSync(named.path, 'utf8')], [1, 'evil'])
})

test('files with another digest than the lock file names use up what one install may read', async t => {
  const { directory } = setUp(t)
  const root = join(directory, '../run')
  const texts = ['a', 'b', 'c']
  const packages = Object.fromEntries(
    texts.map(text => [`node_modules/${text}`, { version: '1.0.0', resolved: publicUrl, integrity: integrityOf(text) }]),
  )
  mkdirSync(join(root, 'work'), { recursive: true })
  writeFileSync(join(root, 'work/package-lock.json'), JSON.stringify({ lockfileVersion: 3, packages }))
  for (const text of texts) {
    const digest = sha512(text, 'hex')
    const path = join(root, 'home/.npm/_cacache/content-v2/sha512', digest.slice(0, 2), digest.slice(2, 4), digest.slice(4))
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text === 'c' ? text : 'wrong')
  }
  const source = new SourceFiles(new RootDirectory(root), join(root, 'work'))
  const archives = await NpmArchives.open({ directory, domain: 'a', source, root: '', home: join(root, 'home'), isAnonymous: true })
  equal(await archives.collect(running, 10), 0)
  equal(await archives.collect(running, 11), 1)
  const ended = AbortSignal.abort(new Error('the Run has ended'))
  await rejects(archives.collect(ended), /the Run has ended/)
  await rejects(archives.provide(ended), /the Run has ended/)
})

test('an install with credentials adds nothing', async t => {
  const { openRun } = setUp(t)
  equal(await (await openRun('a', 'good', { cached: 'good', isAnonymous: false })).archives.collect(running), 0)
})

test('an archive that was damaged on disk is removed, and not given to a Run', async t => {
  const { directory, openRun } = setUp(t)
  await (await openRun('a', 'good', { cached: 'good' })).archives.collect(running)
  const prefix = sha512('good', 'hex').slice(0, 2)
  const [name = ''] = readdirSync(join(directory, 'archives', prefix))
  writeFileSync(join(directory, 'archives', prefix, name), 'evil')
  const { archives, path } = await openRun('b', 'good')
  deepEqual([await archives.provide(running), existsSync(path), readdirSync(join(directory, 'archives', prefix))], [0, false, []])
})

test('a symlink in the cache of npm is not followed', async t => {
  const { openRun } = setUp(t)
  const secret = join(temporary, 'secret')
  writeFileSync(secret, 'good')
  const { archives, path } = await openRun('a', 'good')
  mkdirSync(dirname(path), { recursive: true })
  execFileSync('ln', ['-s', secret, path])
  equal(await archives.collect(running), 0)
})

test('beyond the size the domain that has added the most loses its oldest archives', async t => {
  const { directory } = setUp(t)
  const files = mkdtempSync(join(temporary, 'files-'))
  const add = async (domain: string, text: string, usedAt: number) => {
    writeFileSync(join(files, text), text)
    const store = new ArchiveStore({ directory, domain, maxBytes: 1_000 })
    const digest = sha512(text, 'hex')
    await store.add(digest, new RootDirectory(files), text)
    const [name = ''] = readdirSync(join(directory, digest.slice(0, 2))).filter(each => each.startsWith(digest))
    utimesSync(join(directory, digest.slice(0, 2), name), usedAt, usedAt)
  }
  await add('small', 'small', 1)
  for (const [index, letter] of ['a', 'b', 'c', 'd'].entries()) await add('large', letter.repeat(200), 2 + index)
  const store = new ArchiveStore({ directory, domain: 'small', maxBytes: 500 })
  await store.evict()
  const left = []
  for (const text of ['small', ...['a', 'b', 'c', 'd'].map(letter => letter.repeat(200))])
    if (await store.has(sha512(text, 'hex'))) left.push(text[0])
  deepEqual(left, ['s', 'c', 'd'])
  await rejects(store.add(sha512('x', 'hex'), new RootDirectory(files), '../../etc/passwd'))
})

for (const { name, more, want } of [
  { name: 'no credential', more: {}, want: true },
  { name: 'a registry of the worker', more: { env: { npm_config_registry: 'x' }, workerEnvNames: ['npm_config_registry'] }, want: true },
  { name: 'a registry of the Stack', more: { env: { npm_config_registry: 'x' } }, want: false },
  { name: 'a value of a Secret', more: { env: { X: '1' }, credentialNames: ['X'] }, want: false },
  { name: 'a variable that may be a token', more: { env: { NPM_TOKEN: '1' }, workerEnvNames: ['NPM_TOKEN'] }, want: false },
])
  test(`an install with ${name} is ${want ? '' : 'not '}anonymous`, () =>
    equal(isAnonymousInstall({ env: {}, credentialNames: [], workerEnvNames: [], machineFiles: [], ...more }), want))

test('a file of the machine with a token makes an install not anonymous', () => {
  const npmrc = join(temporary, 'npmrc')
  writeFileSync(npmrc, '//registry.npmjs.org/:_authToken=x\n')
  equal(isAnonymousInstall({ env: {}, credentialNames: [], workerEnvNames: [], machineFiles: [npmrc] }), false)
})

test('archives of a lock file are those with a SHA-512', () => {
  const entry = (integrity: unknown, resolved: unknown = publicUrl) => ({ integrity, resolved })
  const lock = {
    packages: {
      '': {},
      a: entry(integrityOf('a')),
      b: entry(`sha1-x ${integrityOf('b')}`, 'http://x/b.tgz'),
      c: entry('sha1-x'),
      d: entry(1),
      e: 1,
    },
  }
  deepEqual(lockedArchives(JSON.stringify(lock)), [
    { digest: sha512('a', 'hex'), isPublic: true },
    { digest: sha512('b', 'hex'), isPublic: false },
  ])
  deepEqual(lockedArchives('{'), [])
  deepEqual(lockedArchives('[]'), [])
})

test('copies of one archive that several domains have added at the same time count towards the size', async t => {
  const { directory } = setUp(t)
  const digest = sha512('x', 'hex')
  const prefix = join(directory, digest.slice(0, 2))
  mkdirSync(prefix, { recursive: true })
  for (const [index, adder] of ['aaaaaaaa', 'bbbbbbbb', 'cccccccc'].entries()) {
    writeFileSync(join(prefix, `${digest}-${adder}`), 'x')
    utimesSync(join(prefix, `${digest}-${adder}`), index + 1, index + 1)
  }
  await new ArchiveStore({ directory, domain: 'a', maxBytes: 1 }).evict()
  equal(readdirSync(prefix).length, 1)
})

test('an archive that another domain has added meanwhile is not stored twice', async t => {
  const { directory } = setUp(t)
  const root = mkdtempSync(join(temporary, 'files-'))
  writeFileSync(join(root, 'f'), 'x')
  const digest = sha512('x', 'hex')
  const [a, b] = ['a', 'b'].map(domain => new ArchiveStore({ directory, domain }))
  deepEqual([await a!.has(digest), await b!.has(digest)], [false, false])
  equal((await a!.add(digest, new RootDirectory(root), 'f')).isAdded, true)
  equal((await b!.add(digest, new RootDirectory(root), 'f')).isAdded, false)
  equal(readdirSync(join(directory, digest.slice(0, 2))).length, 1)
})
