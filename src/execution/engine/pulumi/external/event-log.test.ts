import { deepEqual, equal } from 'node:assert/strict'
import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
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
  return { log: new EventLog(new RootDirectory(root), path), append: (text: string | Buffer) => appendFileSync(path, text) }
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
