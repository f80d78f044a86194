import { deepEqual, equal, rejects } from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync, truncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { RootDirectory } from '../../../../kubernetes/util/index.ts'
import { EventLog } from './event-log.ts'

/** Written by CLI 3.260.0 (`--event-log`). */
const prelude = '{"sequence":0,"timestamp":1795465151,"preludeEvent":{"config":{}}}\n'
const summary =
  '{"sequence":26,"timestamp":1795465154,"summaryEvent":{"maybeCorrupt":false,"durationSeconds":1,"resourceChanges":{"create":2},"PolicyPacks":{},"isPreview":true,"result":"succeeded"}}\n'

function setUp(t: { after(work: () => void): void }) {
  const root = mkdtempSync(join(tmpdir(), 'oarlock-events-'))
  t.after(() => rmSync(root, { recursive: true }))
  const path = join(root, 'events.json')
  const logged: string[] = []
  const log = new EventLog(new RootDirectory(root), path, message => void logged.push(message))
  return { path, logged, log, append: (text: string | Buffer) => appendFileSync(path, text) }
}

test('each event is read once, when its line is complete', async t => {
  const { log, append } = setUp(t)
  deepEqual(await log.read(), [])
  append(prelude + summary.slice(0, 50))
  deepEqual(await log.read(), [])
  append(summary.slice(50))
  const [event, ...others] = await log.read()
  deepEqual(others, [])
  deepEqual(event?.kind === 'summary' && event.changes, { create: 2 })
  deepEqual(await log.read(), [])
})

test('a character that was written in two parts is read', async t => {
  const { log, append } = setUp(t)
  const bytes = Buffer.from('{"sequence":1,"timestamp":1,"errorEvent":{"error":"größer"}}\n')
  const middle = bytes.indexOf('ö') + 1
  append(bytes.subarray(0, middle))
  await log.read()
  append(bytes.subarray(middle))
  const [event] = await log.read()
  equal(event?.kind === 'error' && event.message, 'größer')
})

test('lines that are no events are skipped', async t => {
  const { log, append } = setUp(t)
  append(`not JSON\n[1]\n\n${summary}`)
  equal((await log.read()).length, 1)
})

test('a line above 8 MiB is skipped without being parsed, and logged once', async t => {
  const { log, logged, append } = setUp(t)
  const padding = ' '.repeat(8 * 1024 * 1024)
  append(prelude + padding + summary + padding)
  deepEqual(await log.read(), [])
  append(summary + summary)
  deepEqual(
    (await log.read()).map(({ kind }) => kind),
    ['summary'],
  )
  deepEqual(logged, ['skipped a line of the event log of the Pulumi CLI that is longer than 8388608 bytes'])
})

test('a line of 8 MiB is read', async t => {
  const { log, logged, append } = setUp(t)
  append(`${' '.repeat(8 * 1024 * 1024 - summary.length + 1)}${summary}`)
  equal((await log.read()).length, 1)
  deepEqual(logged, [])
})

test('a log above 256 MiB is read up to the limit, which is logged once', async t => {
  const { path, log, logged, append } = setUp(t)
  append(summary)
  truncateSync(path, 256 * 1024 * 1024 + 1)
  equal((await log.read()).length, 1)
  append(`\n${summary}`)
  deepEqual(await log.read(), [])
  deepEqual(logged.slice(1), ['the event log of the Pulumi CLI has reached 268435456 bytes: later events are not read'])
})

test('after a read that fails midway the rest of the line is read', async () => {
  const bytes = Buffer.from(summary)
  let reads = 0
  const files: ConstructorParameters<typeof EventLog>[0] = {
    async readPieces(_path, { start = 0 }, onPiece) {
      reads++
      onPiece(bytes.subarray(start, reads === 1 ? 50 : undefined))
      if (reads === 1) throw new Error('EIO')
      return true
    },
  }
  const log = new EventLog(files, 'events.json', () => {})
  await rejects(log.read(), /EIO/)
  equal((await log.read()).length, 1)
})
