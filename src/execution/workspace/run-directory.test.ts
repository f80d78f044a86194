import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { tmpfsUnavailable } from '../../../test/support/mount-tmpfs.ts'
import { removeTree } from './run-directory.ts'

const hasPerl = existsSync('/usr/bin/perl')

test('removes a tree with paths that are too long, names that are not UTF-8, and directories that may not be written', {
  skip: !hasPerl && 'no perl',
}, async t => {
  const parent = mkdtempSync(join(tmpdir(), 'oarlock-remove-'))
  t.after(() => rmSync(parent, { recursive: true, force: true }))
  const root = join(parent, 'run')
  const script = `mkdir "run"; chdir "run"; mkdir "\\xff\\xfe"; chdir "\\xff\\xfe"; $n = "x" x 200; for (1..30) { mkdir $n; chdir $n }
    open(F, ">", "\\xff"); mkdir "\\xfe"; mkdir "\\xfe/\\xfd"; chmod 0000, "\\xfe/\\xfd"; chmod 0500, "\\xfe"`
  execFileSync('perl', ['-e', script], { cwd: parent })
  await removeTree(root)
  assert.equal(existsSync(root), false)
})

test('deletes nothing that is mounted below, reports where, and deletes the rest', { skip: tmpfsUnavailable() ?? false }, async t => {
  const parent = mkdtempSync(join(tmpdir(), 'oarlock-remove-'))
  const outside = join(parent, 'outside')
  const root = join(parent, 'run')
  const target = join(root, 'work', 'a \\ directory', 'target')
  for (const path of [outside, target, join(root, 'work', 'other', 'deep')]) mkdirSync(path, { recursive: true })
  writeFileSync(join(outside, 'kept'), 'kept')
  for (const name of ['work/file', 'work/other/file', 'work/a \\ directory/file']) writeFileSync(join(root, name), '')
  execFileSync('mount', ['--bind', outside, target])
  t.after(() => {
    execFileSync('umount', [target])
    rmSync(parent, { recursive: true })
  })
  await assert.rejects(removeTree(root), { message: `something is mounted on ${target}; unmount it` })
  assert.equal(readFileSync(join(outside, 'kept'), 'utf8'), 'kept')
  assert.deepEqual(readdirSync(root, { recursive: true }).sort(), [
    'work',
    'work/a \\ directory',
    'work/a \\ directory/target',
    'work/a \\ directory/target/kept',
  ])
})
