import { deepEqual, equal, rejects, throws } from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createWriteStream, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { writeTar } from '../tar.ts'
import { type BackupManifest, backupFormat, backupFormatVersion, manifestFile, parseManifest } from './manifest.ts'
import { restoreInstallation } from './restore-installation.ts'
import { verifyBackup } from './verify-backup.ts'

const sha256 = 'a'.repeat(64)
const valid: BackupManifest = {
  ...{ format: backupFormat, formatVersion: backupFormatVersion, oarlock: '1.2.3', createdAt: '2026-01-02T03:04:05Z' },
  files: [
    { name: 'objects.db', size: 1, sha256 },
    { name: 'states.db', size: 1, sha256 },
  ],
  objects: { count: 1, revision: 2, encrypted: { key1: 1 } },
  states: {
    ...{ stacks: 1, versions: 1, orphans: 0, plans: 0, locks: 0, key: 'state-key-0' },
    stores: { id: 'id', generation: { number: 1, nonce: 'nonce', time: '2026-01-02T03:04:05Z' } },
  },
  omitted: [{ what: 'logs', reason: 'not wanted' }],
}
const parse = (manifest: object) => parseManifest(JSON.stringify(manifest), 'my.backup')

test('a manifest is read with all its fields', () => deepEqual(parse(valid), valid))

const invalid: [field: string, change: object][] = [
  ['oarlock', { oarlock: 1 }],
  ['createdAt', { createdAt: 'yesterday' }],
  ['files', { files: {} }],
  ['files', { files: [...valid.files, { name: '../evil.db', size: 1, sha256 }] }],
  ['files', { files: [valid.files[0], valid.files[0]] }],
  ['files', { files: [valid.files[0]] }],
  ['files', { files: [valid.files[0], { ...valid.files[1], size: -1 }] }],
  ['files', { files: [valid.files[0], { ...valid.files[1], sha256: '' }] }],
  ['objects', { objects: { ...valid.objects, encrypted: { '\u001b[2J': 1 } } }],
  ['objects', { objects: null }],
  ['states', { states: { ...valid.states, key: 'a\nverified: 4 files' } }],
  ['states', { states: { ...valid.states, stores: { id: 'id' } } }],
  ['logs', { logs: { count: '1' } }],
  ['keys', { keys: {} }],
  ['omitted', { omitted: [{ what: 'logs', reason: '\u001b]0;title\u0007' }] }],
]
for (const [field, change] of invalid)
  test(`a manifest with ${JSON.stringify(change).slice(0, 60)} is damaged`, () =>
    throws(() => parse({ ...valid, ...change }), { message: `my.backup is damaged: the field ${field} of manifest.json is not valid` }))

test('no file is extracted under a name that leads elsewhere', async () => {
  const base = mkdtempSync(join(tmpdir(), 'oarlock-manifest-'))
  try {
    const path = join(base, 'crafted.backup')
    const content = Buffer.from('evil')
    const evil = join(base, 'evil.db')
    const names = [`../../../../../../..${evil}`, '../evil.db']
    const digest = createHash('sha256').update(content).digest('hex')
    const files = names.map(name => ({ name, size: content.length, sha256: digest }))
    const manifest = Buffer.from(JSON.stringify({ ...valid, files, objects: undefined, states: undefined }))
    const entries = [
      { name: manifestFile, size: manifest.length, content: [manifest] },
      ...names.map(name => ({ name, size: content.length, content: [content] })),
    ]
    await pipeline(writeTar(entries), createWriteStream(path))
    await rejects(verifyBackup(path), /the field files of manifest\.json is not valid/)
    await rejects(restoreInstallation({ file: path, dataDir: join(base, 'data') }), /the field files of manifest\.json is not valid/)
    equal(existsSync(evil), false)
    deepEqual(readdirSync(base), ['crafted.backup'])
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})
