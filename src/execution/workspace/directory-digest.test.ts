import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { RootDirectory } from '../../kubernetes/util/root-directory.ts'
import { directoryDigest } from './directory-digest.ts'

test('a file that becomes executable changes the digest, other permissions do not', async t => {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-digest-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const path = join(directory, 'work', 'script')
  mkdirSync(join(directory, 'work'))
  writeFileSync(path, 'true', { mode: 0o644 })
  const digest = () => directoryDigest(new RootDirectory(directory), join(directory, 'work'))
  const before = await digest()
  chmodSync(path, 0o600)
  assert.equal(await digest(), before)
  chmodSync(path, 0o755)
  assert.notEqual(await digest(), before)
})
