import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { mountTmpfs, tmpfsUnavailable } from '../../../../test/support/mount-tmpfs.ts'
import { AuditLog } from './audit-log.ts'

const silent = { error: () => {}, info: () => {} }

async function withDirectory(use: (directory: string) => Promise<void>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-audit-'))
  try {
    await use(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const line = (i: number) => JSON.stringify({ i, text: 'x'.repeat(80) })

/** Appends lines and waits until they are written, `batch` at a time. */
async function write(path: string, count: number, batch: number, options: object): Promise<void> {
  for (let i = 0; i < count; i += batch) {
    const log = new AuditLog({ path, log: silent, ...options })
    for (let j = i; j < i + batch; j++) log.append(line(j))
    await log.close()
    assert.deepEqual(log.stats, { events: batch, lost: 0 })
  }
}

test('the file is rotated at its maximum size; the newest backups are kept, in order and with every line', async () => {
  await withDirectory(async directory => {
    const path = join(directory, 'audit.log')
    writeFileSync(join(directory, 'audit-notes.log'), 'of a user')
    await write(path, 200, 10, { maxBytes: 2_000, maxBackups: 3 })
    const names = readdirSync(directory).sort()
    assert.deepEqual(
      names.map(name => name.replace(/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}/, 'TIME')),
      ['audit-TIME.log', 'audit-TIME.log', 'audit-TIME.log', 'audit-notes.log', 'audit.log'],
    )
    const kept = names.filter(name => name !== 'audit-notes.log')
    for (const name of kept) assert.ok(statSync(join(directory, name)).size <= 2_000)
    const numbers = kept.flatMap(name =>
      readFileSync(join(directory, name), 'utf8')
        .trim()
        .split('\n')
        .map(text => (JSON.parse(text) as { i: number }).i),
    )
    assert.deepEqual(
      numbers,
      Array.from(numbers, (_, index) => 200 - numbers.length + index),
    )
  })
})

test('backups beyond the maximum age are deleted by the next rotation', async () => {
  await withDirectory(async directory => {
    const old = join(directory, 'audit-2020-01-02T03-04-05.678.log')
    writeFileSync(old, '')
    utimesSync(old, 0, 0)
    await write(join(directory, 'audit.log'), 40, 10, { maxBytes: 2_000, maxBackups: 100, maxAgeMs: 1_000_000 })
    assert.ok(!readdirSync(directory).includes('audit-2020-01-02T03-04-05.678.log'))
    assert.ok(readdirSync(directory).length > 1)
  })
})

test('on a full disk events are lost and counted, the lines in the file stay whole, and writing continues when there is space', {
  skip: tmpfsUnavailable(),
}, async () => {
  const disk = mountTmpfs(1024 * 1024)
  try {
    const path = join(disk.path, 'audit', 'audit.log')
    const ballast = join(disk.path, 'ballast')
    await write(path, 10, 10, {})
    const full = () => {
      try {
        writeFileSync(ballast, Buffer.alloc(2 * 1024 * 1024))
      } catch {}
    }
    full()
    const messages: string[] = []
    const log = new AuditLog({
      path,
      log: { error: (_: object, text: string) => messages.push(text), info: (_: object, text: string) => messages.push(text) } as never,
    })
    for (let i = 10; i < 1_000; i++) log.append(line(i))
    await log.flush()
    assert.deepEqual(log.stats, { events: 990, lost: 990 })
    // Longer than what is free in the last block of the file.
    log.append('x'.repeat(10_000))
    await log.flush()
    rmSync(ballast)
    log.append(line(1_000))
    await log.close()
    assert.deepEqual(log.stats, { events: 992, lost: 991 })
    assert.deepEqual(messages, ['audit events are lost: they cannot be written', 'audit events are written again'])
    const numbers = readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map(text => (JSON.parse(text) as { i: number }).i)
    assert.deepEqual(numbers, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1_000])
  } finally {
    await disk.unmount()
  }
})

test('what waits for the disk is limited: further events are lost and counted', async () => {
  await withDirectory(async directory => {
    const log = new AuditLog({ path: join(directory, 'audit.log'), log: silent })
    const long = 'x'.repeat(1024 * 1024)
    for (let i = 0; i < 20; i++) log.append(long)
    await log.close()
    assert.deepEqual(log.stats, { events: 20, lost: 11 })
  })
})
