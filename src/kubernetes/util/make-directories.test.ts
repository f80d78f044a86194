import { deepEqual, equal, throws } from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeDirectories } from './make-directories.ts'

test('creates the missing ancestors with the mode, and accepts an existing directory', t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-mkdir-'))
  t.after(() => rmSync(root, { recursive: true }))
  const path = join(root, 'a', 'b', 'c')
  deepEqual(makeDirectories(path, 0o700), [join(root, 'a'), join(root, 'a', 'b'), path])
  deepEqual(makeDirectories(path, 0o700), [])
  for (const each of [path, join(root, 'a')]) equal(statSync(each).mode & 0o777, 0o700)
})

test('throws ENOTDIR when an ancestor is a file', t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-mkdir-'))
  t.after(() => rmSync(root, { recursive: true }))
  writeFileSync(join(root, 'file'), '')
  throws(() => makeDirectories(join(root, 'file', 'a')), { code: 'ENOTDIR' })
  throws(() => makeDirectories(join(root, 'file')), { code: 'ENOTDIR' })
})

test('throws instead of looping where the kernel rejects directories with ENOENT', t => {
  if (process.platform !== 'linux') return t.skip('/proc exists on Linux only')
  throws(() => makeDirectories('/proc/oarlock/data'), { code: 'ENOENT' })
})
