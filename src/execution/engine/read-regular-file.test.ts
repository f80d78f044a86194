import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileSize, readRegularFile } from './read-regular-file.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-file-'))
after(() => rmSync(directory, { recursive: true, force: true }))
writeFileSync(join(directory, 'file'), 'text')
symlinkSync('file', join(directory, 'link'))
execFileSync('mkfifo', [join(directory, 'pipe')])

test('reads a file and its size', async () => {
  assert.equal(await readRegularFile(join(directory, 'file')), 'text')
  assert.equal(await fileSize(join(directory, 'file')), 4)
})

test('a missing file is undefined', async () => {
  assert.equal(await readRegularFile(join(directory, 'missing')), undefined)
  assert.equal(await fileSize(join(directory, 'missing')), undefined)
})

test('rejects a symlink', async () => assert.rejects(readRegularFile(join(directory, 'link')), { code: 'ELOOP' }))

test('a pipe without a writer does not block', async () => {
  await readRegularFile(join(directory, 'pipe')).catch(() => {})
})
