import { deepEqual, equal } from 'node:assert/strict'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { RootDirectory } from '../../kubernetes/util/root-directory.ts'
import { directoryDigest } from './directory-digest.ts'
import { archiveSource, maxArchiveBytes, writeArchive } from './source-archive.ts'

test('an archive restores files, programs and symlinks, without .git, and has the same digest', async t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-archive-'))
  t.after(() => rmSync(root, { recursive: true }))
  const [from, to] = [join(root, 'from'), join(root, 'to')]
  for (const directory of ['modules/a', '.git']) mkdirSync(join(from, directory), { recursive: true })
  mkdirSync(to)
  writeFileSync(join(from, 'main.tf'), 'é')
  writeFileSync(join(from, 'modules', 'a', 'run.sh'), '#!/bin/sh\n')
  chmodSync(join(from, 'modules', 'a', 'run.sh'), 0o755)
  symlinkSync('modules/a', join(from, 'link'))
  writeFileSync(join(from, '.git', 'HEAD'), 'x')
  const files = new RootDirectory(root)
  const entries = await archiveSource(files, from)
  deepEqual(
    entries?.map(({ path }) => path),
    ['link', 'main.tf', 'modules/a/run.sh'],
  )
  await writeArchive(files, to, JSON.parse(JSON.stringify(entries)))
  equal(readFileSync(join(to, 'main.tf'), 'utf8'), 'é')
  equal(statSync(join(to, 'modules', 'a', 'run.sh')).mode & 0o111, 0o111)
  equal(readlinkSync(join(to, 'link')), 'modules/a')
  equal(await directoryDigest(files, to), await directoryDigest(files, from))
})

test('a source with too many bytes or files has no archive', async t => {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-archive-'))
  t.after(() => rmSync(root, { recursive: true }))
  const [large, many] = [join(root, 'large'), join(root, 'many')]
  mkdirSync(large)
  for (const name of ['a', 'b']) writeFileSync(join(large, name), Buffer.alloc(maxArchiveBytes / 2 + 1))
  equal(await archiveSource(new RootDirectory(large), large), undefined)
  mkdirSync(many)
  for (let i = 0; i <= 2_000; i++) writeFileSync(join(many, String(i)), '')
  equal(await archiveSource(new RootDirectory(many), many), undefined)
})
