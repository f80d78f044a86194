import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { RootDirectory, UnexpectedFileError } from './root-directory.ts'

const base = mkdtempSync(join(tmpdir(), 'oarlock-root-'))
after(() => rmSync(base, { recursive: true, force: true }))
const outside = join(base, 'outside')
mkdirSync(outside)
const victim = join(outside, 'victim')
const limit = { maxBytes: 1_000 }

function setUp(name: string): { files: RootDirectory; at: (path: string) => string } {
  const root = join(base, name)
  mkdirSync(join(root, 'a', 'b'), { recursive: true })
  writeFileSync(victim, 'of the worker')
  return { files: new RootDirectory(root), at: path => join(root, path) }
}

test('reads, replaces, lists and removes files by absolute and relative path', async () => {
  const { files, at } = setUp('plain')
  assert.equal(await files.read('a/b/none', limit), undefined)
  assert.equal(await files.read('none/none', limit), undefined)
  await files.write('a/b/file', 'first')
  await files.write(at('a/b/file'), Buffer.from('second'))
  assert.equal(await files.readText(at('a/b/file'), limit), 'second')
  assert.equal(statSync(at('a/b/file')).mode & 0o777, 0o600)
  await files.makeDirectory('a/c/d')
  await files.makeDirectory('a/c/d')
  assert.deepEqual(await files.list('a'), [
    { name: 'b', kind: 'directory' },
    { name: 'c', kind: 'directory' },
  ])
  await files.createLink('a/link', 'b')
  assert.equal(await files.readLink('a/link'), 'b')
  assert.equal(await files.kindOf('a/link'), 'symlink')
  assert.equal(await files.move('a/b/file', files, 'a/c/moved'), true)
  await files.remove('a/c/moved')
  await files.remove('a/c/moved')
  assert.equal(await files.kindOf('a/c/moved'), undefined)
  assert.deepEqual(await files.list('a/none'), [])
})

test('the root itself may be reached through a symlink', async () => {
  const { at } = setUp('linked')
  symlinkSync(at(''), join(base, 'to-linked'))
  const files = new RootDirectory(join(base, 'to-linked'))
  await files.write('a/file', 'x')
  assert.equal(readFileSync(at('a/file'), 'utf8'), 'x')
})

for (const path of ['..', '../outside/victim', 'a/../../outside/victim', 'a//b', './a', outside, 'a/\0'])
  test(`rejects ${JSON.stringify(path.replace(base, ''))}, which is not below the root`, async () => {
    const { files } = setUp('escape')
    await assert.rejects(files.read(path, limit), RangeError)
    await assert.rejects(files.write(path, 'x'), RangeError)
    assert.equal(readFileSync(victim, 'utf8'), 'of the worker')
  })

test('a symlink at the path is neither read nor written through: writing replaces it', async () => {
  const { files, at } = setUp('last')
  symlinkSync(victim, at('a/file'))
  await assert.rejects(files.read('a/file', limit), UnexpectedFileError)
  await files.write('a/file', 'of the Run')
  assert.equal(readFileSync(victim, 'utf8'), 'of the worker')
  assert.equal(await files.readText('a/file', limit), 'of the Run')
})

test('a symlink in the middle of the path is not followed by any operation', async () => {
  const { files, at } = setUp('middle')
  symlinkSync(outside, at('a/dir'))
  await assert.rejects(files.read('a/dir/victim', limit), UnexpectedFileError)
  await assert.rejects(files.write('a/dir/victim', 'x'), UnexpectedFileError)
  await assert.rejects(files.remove('a/dir/victim'), UnexpectedFileError)
  await assert.rejects(files.list('a/dir'), UnexpectedFileError)
  await assert.rejects(files.kindOf('a/dir/victim'), UnexpectedFileError)
  await assert.rejects(files.createLink('a/dir/link', 'x'), UnexpectedFileError)
  await assert.rejects(files.makeDirectory('a/dir/new'), UnexpectedFileError)
  await assert.rejects(files.move('a/dir/victim', files, 'a/mine'), UnexpectedFileError)
  await files.write('a/mine', 'x')
  await assert.rejects(files.move('a/mine', files, 'a/dir/mine'), UnexpectedFileError)
  assert.equal(readFileSync(victim, 'utf8'), 'of the worker')
  assert.ok(!existsSync(join(outside, 'new')) && !existsSync(join(outside, 'mine')))
})

test('a directory that is replaced by a symlink again and again never leads out of the root', { timeout: 60_000 }, async () => {
  const { files, at } = setUp('race')
  mkdirSync(at('real'))
  writeFileSync(at('real/victim'), 'of the Run')
  symlinkSync(outside, at('fake'))
  const swap = 'cd "$1"; while :; do mv real a/x; mv fake real; mv real fake; mv a/x real; done'
  const racer = spawn('sh', ['-c', swap, 'sh', at('')], { stdio: 'ignore' })
  try {
    for (let i = 0; i < 2_000; i++) {
      const text = await files.readText('real/victim', limit).catch(() => undefined)
      assert.ok(text === undefined || text === 'of the Run', String(text))
      await files.write('real/victim', 'of the Run').catch(() => {})
    }
  } finally {
    const exited = once(racer, 'exit')
    racer.kill('SIGKILL')
    await exited
  }
  assert.equal(readFileSync(victim, 'utf8'), 'of the worker')
})

test('a pipe, a socket, a device and a directory are rejected and do not block', { timeout: 30_000 }, async t => {
  const { files, at } = setUp('special')
  execFileSync('mkfifo', [at('a/pipe')])
  symlinkSync('/dev/zero', at('a/zero'))
  const server = createServer().listen(at('a/socket'))
  t.after(() => server.close())
  await new Promise(resolve => server.once('listening', resolve))
  for (const name of ['pipe', 'zero', 'socket', 'b']) await assert.rejects(files.read(`a/${name}`, limit), UnexpectedFileError)
  for (const name of ['pipe', 'zero', 'socket']) {
    await files.write(`a/${name}`, 'x')
    assert.equal(await files.readText(`a/${name}`, limit), 'x')
  }
  await assert.rejects(files.write('a/b', 'x'), { code: /EISDIR|ENOTEMPTY|EEXIST/ })
})

test('a file above the limit is rejected before it is read, also when it is sparse', async () => {
  const { files, at } = setUp('large')
  writeFileSync(at('a/file'), 'x'.repeat(1_000))
  assert.equal((await files.read('a/file', limit))?.byteLength, 1_000)
  truncateSync(at('a/file'), 2 ** 40)
  await assert.rejects(files.read('a/file', limit), /a\/file has 1099511627776 bytes; at most 1000 are allowed/)
})

test('errors name the path and keep the code', async () => {
  const { files, at } = setUp('errors')
  await assert.rejects(files.createLink('none/link', 'x'), { code: 'ENOENT', message: `ENOENT: open ${at('none')}` })
})
