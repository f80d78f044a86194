import { deepEqual, equal, throws } from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { prepareWorkerDirectories } from './worker-directories.ts'
import { WorkerOptionError } from './worker-option-error.ts'

const parent = mkdtempSync(join(tmpdir(), 'oarlock-directories-'))
after(() => rmSync(parent, { recursive: true, force: true }))
const prepare = (base: string, { runs = join(base, 'runs'), cache = join(base, 'cache') } = {}) =>
  prepareWorkerDirectories({ runsDir: runs, cacheDir: cache }, base)
const rejects = (base: string, why: RegExp, directories?: { runs: string }) =>
  throws(
    () => prepare(base, directories),
    (error: Error) => error instanceof WorkerOptionError && why.test(error.message),
  )

test('creates private directories, and removes the access of others', () => {
  const base = join(parent, 'new')
  prepare(base)
  for (const path of [base, join(base, 'runs'), join(base, 'cache')]) equal(statSync(path).mode & 0o777, 0o700)
  chmodSync(base, 0o777)
  prepare(base)
  equal(statSync(base).mode & 0o777, 0o700)
})

test('rejects a default directory that is a symlink, and creates nothing behind it', () => {
  const target = join(parent, 'target')
  const base = join(parent, 'link')
  mkdirSync(target)
  symlinkSync(target, base)
  rejects(base, /link is not a directory; remove it, or set OARLOCK_RUNS_DIR/)
  deepEqual(readdirSync(target), [])
})

test('rejects directories that another user owns', { skip: process.getuid?.() !== 0 && 'needs root' }, () => {
  const base = join(parent, 'foreign')
  mkdirSync(base)
  chownSync(base, 12_345, 12_345)
  rejects(base, /foreign belongs to user 12345/)
  const runs = join(parent, 'foreign-runs')
  mkdirSync(runs)
  chownSync(runs, 12_345, 12_345)
  rejects(join(parent, 'own'), /foreign-runs belongs to user 12345/, { runs })
})
