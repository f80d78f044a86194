import { deepEqual, equal, rejects } from 'node:assert/strict'
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { emptyLog, type LogState } from './decide-append.ts'
import { appendToLog, findTail, readLog, recoverLog } from './log-file.ts'

const maxBytes = 10_000
const stateAfter = (text: string): LogState => ({ ...emptyLog, received: text.length, size: text.length })

function logPath(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-log-file-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return join(directory, 'run-1')
}

test('recoverLog returns the empty state without files', async t => {
  deepEqual(await recoverLog(logPath(t), maxBytes), emptyLog)
})

test('recoverLog returns the state after a complete append', async t => {
  const path = logPath(t)
  await appendToLog(path, emptyLog, stateAfter('one\n'), Buffer.from('one\n'))
  deepEqual(await recoverLog(path, maxBytes), stateAfter('one\n'))
})

test('recoverLog does not take a state that it cannot read for a missing one', async t => {
  const path = logPath(t)
  writeFileSync(`${path}.log`, 'one\n')
  mkdirSync(`${path}.meta`)
  await rejects(recoverLog(path, maxBytes), { code: 'EISDIR' })
})

test('recoverLog rolls back an interrupted append', async t => {
  const path = logPath(t)
  await appendToLog(path, emptyLog, stateAfter('one\n'), Buffer.from('one\n'))
  await appendToLog(path, stateAfter('one\n'), stateAfter('one\ntwo\n'), Buffer.from('two\n'))
  truncateSync(`${path}.log`, 6)
  deepEqual(await recoverLog(path, maxBytes), stateAfter('one\n'))
  equal(readFileSync(`${path}.log`, 'utf8'), 'one\n')
})

test('recoverLog adds a mark where acknowledged bytes were lost', async t => {
  const path = logPath(t)
  await appendToLog(path, emptyLog, stateAfter('one\n'), Buffer.from('one\n'))
  await appendToLog(path, stateAfter('one\n'), stateAfter('one\ntwo\n'), Buffer.from('two\n'))
  truncateSync(`${path}.log`, 2)
  const { received, size } = await recoverLog(path, maxBytes)
  const text = readFileSync(`${path}.log`, 'utf8')
  equal(text, 'on\n[oarlock] part of this log was lost when the machine stopped\n')
  deepEqual({ received, size }, { received: 4, size: text.length })
})

test('recoverLog counts the stored bytes as received when the meta file is corrupt or missing', async t => {
  const path = logPath(t)
  appendFileSync(`${path}.log`, 'one\n')
  deepEqual(await recoverLog(path, maxBytes), stateAfter('one\n'))
  writeFileSync(`${path}.meta`, 'not JSON')
  deepEqual(await recoverLog(path, maxBytes), stateAfter('one\n'))
})

test('readLog reads a range, and nothing without a file', async t => {
  const path = logPath(t)
  equal((await readLog(path, 0, 10)).toString(), '')
  appendFileSync(`${path}.log`, 'one\ntwo\n')
  equal((await readLog(path, 4, 3)).toString(), 'two')
  equal((await readLog(path, 4, 100)).toString(), 'two\n')
})

for (const { name, text, lines, want } of [
  { name: 'no line', text: 'a\nb\n', lines: 0, want: '' },
  { name: 'the last line', text: 'a\nb\n', lines: 1, want: 'b\n' },
  { name: 'an incomplete last line', text: 'a\nb', lines: 1, want: 'b' },
  { name: 'two lines', text: 'a\nb\nc\n', lines: 2, want: 'b\nc\n' },
  { name: 'more lines than there are', text: 'a\nb\n', lines: 9, want: 'a\nb\n' },
  { name: 'a line that spans several chunks', text: `a\n${'x'.repeat(200_000)}\n`, lines: 1, want: `${'x'.repeat(200_000)}\n` },
]) {
  test(`findTail finds ${name}`, async t => {
    const path = logPath(t)
    writeFileSync(`${path}.log`, text)
    equal(text.slice(await findTail(path, text.length, lines)), want)
  })
}
