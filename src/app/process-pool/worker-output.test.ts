import { deepEqual, equal, ok } from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { lastErrorOf, linesOfWorker, tailOf } from './worker-output.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-worker-output-'))
after(() => rmSync(directory, { recursive: true, force: true }))
const path = (name: string) => join(directory, name)

test('the end of a long output is read, not all of it', () => {
  writeFileSync(path('long'), 'first')
  truncateSync(path('long'), 8 * 1024 ** 3)
  writeFileSync(path('long'), '\noarlock worker: failed to register\n', { flag: 'a' })
  equal(lastErrorOf(tailOf(path('long'), 4_096)), 'failed to register')
})

test('an output that was replaced by a pipe, a directory or a symlink is empty, and does not block', () => {
  execFileSync('mkfifo', [path('pipe')])
  writeFileSync(path('secret'), 'oarlock: a secret')
  symlinkSync(path('secret'), path('link'))
  deepEqual(
    ['pipe', 'link', '.', 'missing'].map(name => tailOf(path(name), 4_096)),
    ['', '', '', ''],
  )
})

test('only lines of the worker itself are logged', () => {
  const kept = [
    '{"time":"2026-01-01T00:00:00Z","level":"warn"}',
    'oarlock worker: unexpected SyntaxError',
    'FATAL ERROR: Reached heap limit',
    '    at f (a.ts:1:2)',
  ]
  const others = ['/work/a.ts:53', 'SyntaxError: Invalid regular expression: /hunter2/', 'hunter2', ' {"time":"hunter2"}', '']
  equal(linesOfWorker([...others, ...kept, ...others].join('\n')), kept.join('\n'))
})

test('whatever a worker prints, its error is one line of at most 500 characters', () => {
  const piece = fc.oneof(
    fc.constantFrom('oarlock: ', 'oarlock worker: ', '\n', '\r', '\u2028', '\0', 'x'.repeat(600)),
    fc.string({ unit: fc.nat(0xffff).map(code => String.fromCharCode(code)) }),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), pieces => {
      const error = lastErrorOf(pieces.join(''))
      ok(error === undefined || /^[^\n\r\u2028\u2029]{1,500}$/.test(error), JSON.stringify(error))
    }),
    { seed: 20_261, numRuns: Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 300) },
  )
})
