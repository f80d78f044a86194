import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { RootDirectory, UnexpectedFileError } from '../../kubernetes/util/index.ts'
import { h1Digest } from './h1-digest.ts'

const limits = { bytes: 1_000, files: 10 }

function createTree(t: TestContext, files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-tree-'))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  return root
}
const digestOf = (root: string, files = limits.files) => h1Digest(new RootDirectory(root), '', { ...limits, files })

test('is the digest that Go computes', async t => {
  // dirhash.Hash1 sorts by bytes: "a-b" and "a.txt" before "a/b", U+FFFD before U+1F600.
  const root = createTree(t, { 'a/b': 'one', 'a.txt': 'two', 'a-b': '', '\u{1F600}': 'x', '\uFFFD': 'y', 'd/e/f': 'deep' })
  const lines = execFileSync('sh', ['-c', 'find . -type f | cut -c3- | LC_ALL=C sort | xargs sha256sum'], { cwd: root })
  const expected = execFileSync('sh', ['-c', 'sha256sum | cut -c1-64'], { input: lines })
  assert.equal(await digestOf(root), `h1:${Buffer.from(expected.toString().trim(), 'hex').toString('base64')}`)
})

test('does not depend on modes and empty directories', async t => {
  const root = createTree(t, { plugin: 'binary' })
  const before = await digestOf(root)
  mkdirSync(join(root, 'empty'))
  execFileSync('chmod', ['755', join(root, 'plugin')])
  assert.equal(await digestOf(root), before)
})

for (const { name, change, problem, files = limits.files } of [
  { name: 'a symlink', change: (root: string) => symlinkSync('/dev/zero', join(root, 'link')), problem: /link is not a regular file$/ },
  { name: 'a pipe', change: (root: string) => execFileSync('mkfifo', [join(root, 'pipe')]), problem: /pipe is not a regular file$/ },
  { name: 'a line break in a name', change: (root: string) => writeFileSync(join(root, 'a\nb'), ''), problem: /is not a regular file$/ },
  { name: 'no files', change: (root: string) => rmSync(join(root, 'plugin')), problem: /has no files$/ },
  {
    name: 'too many bytes',
    change: (root: string) => truncateSync(join(root, 'plugin'), 1e12),
    problem: /has 1000000000000 bytes; at most 1000/,
  },
  {
    name: 'too many directories',
    change: (root: string) => mkdirSync(join(root, '1/2/3/4/5/6/7/8/9/10'), { recursive: true }),
    problem: /has more than 10 files and directories$/,
  },
  {
    name: 'directories that are nested too deep',
    change: (root: string) => mkdirSync(join(root, 'd/'.repeat(21)), { recursive: true }),
    problem: /has directories nested more than 20 levels deep$/,
    files: 100,
  },
] as { name: string; change(root: string): void; problem: RegExp; files?: number }[])
  test(`a tree with ${name} has no digest`, async t => {
    const root = createTree(t, { plugin: 'binary' })
    change(root)
    await assert.rejects(digestOf(root, files), error => error instanceof UnexpectedFileError && problem.test(error.message))
  })
