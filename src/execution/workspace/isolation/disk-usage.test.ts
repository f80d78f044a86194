import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { measureDisk, minEntryBytes } from './disk-usage.ts'

const skip = process.platform !== 'linux' && 'needs Linux'
const mebibyte = 2 ** 20

function makeDirectory(t: TestContext): string {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-disk-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  return root
}

const measure = (root: string, maxBytes = 2 ** 40) => measureDisk({ root, processes: [], maxBytes })

test('counts a file with several links once, links themselves, and nothing behind them', { skip }, async t => {
  const root = makeDirectory(t)
  const { bytes: empty } = await measure(root)
  writeFileSync(join(root, 'file'), Buffer.alloc(mebibyte, 1))
  linkSync(join(root, 'file'), join(root, 'same'))
  symlinkSync('/usr', join(root, 'link'))
  symlinkSync(root, join(root, 'loop'))
  const { bytes, problem } = await measure(root)
  assert.deepEqual([bytes - empty, problem], [mebibyte + 2 * minEntryBytes, undefined])
})

test('counts an entry that takes no block as 4 KiB', { skip }, async t => {
  const root = makeDirectory(t)
  const { bytes: empty } = await measure(root)
  for (let i = 0; i < 10; i++) writeFileSync(join(root, `${i}`), '')
  mkdirSync(join(root, 'directory'))
  assert.ok((await measure(root)).bytes - empty >= 11 * minEntryBytes)
})

test('stops above the maximum, and leaves no descriptor open', { skip }, async t => {
  const root = makeDirectory(t)
  let path = root
  for (let depth = 0; depth < 300; depth++) {
    path = join(path, 'd')
    mkdirSync(path)
  }
  const countOpen = () => readdirSync('/proc/self/fd').length
  const before = countOpen()
  assert.ok((await measure(root, 10 * minEntryBytes)).bytes <= 20 * minEntryBytes)
  assert.match(
    (await measure(root)).problem ?? '',
    /^its directories are nested more than 256 levels deep, as in "d\/d\/d\/d"; nest them less$/,
  )
  assert.equal((await measureDisk({ root, processes: [], maxBytes: 2 ** 40, isStopped: () => true })).bytes < 2 ** 16, true)
  assert.equal(countOpen(), before)
})

test('files that vanish while they are counted are no problem', { skip }, async t => {
  const root = makeDirectory(t)
  const churn = 'while :; do mkdir -p a/b/c/d; for i in 1 2 3 4 5 6 7 8; do : > a/b/c/$i; done; ln -s / a/b/c/x; mv a z; rm -rf z; done'
  const child = spawn('sh', ['-c', churn], { cwd: root, stdio: 'ignore' })
  try {
    for (let i = 0; i < 500; i++) {
      const { bytes, problem } = await measureDisk({ root, processes: [child.pid!], maxBytes: 2 ** 40 })
      assert.equal(problem, undefined)
      assert.ok(bytes < mebibyte, `${bytes}`)
      await new Promise(resolve => setImmediate(resolve))
    }
  } finally {
    // Before the directory is removed.
    child.kill('SIGKILL')
    await new Promise(resolve => child.once('exit', resolve))
  }
})
