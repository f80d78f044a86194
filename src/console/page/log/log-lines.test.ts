import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { LogLines, maxShownCharacters } from './log-lines.ts'

const at = (second: number, line: string) => `2026-06-01T10:00:${String(second).padStart(2, '0')}Z ${line}\n`
const stored = [
  'Run a-1: Apply of Stack x/a',
  'größer \u001b[31mrot\u001b[0m',
  'Planning',
  'Applying',
  '50%\r100%',
  'Planning',
  'Succeeded',
]
const sent = new TextEncoder().encode(stored.map((line, index) => at(index, line)).join(''))

test('a log is the same whatever the pieces are in which it arrives', () => {
  for (const size of [1, 7, 64, sent.length]) {
    const lines = new LogLines()
    for (let from = 0; from < sent.length; from += size) lines.push(sent.subarray(from, from + size))
    deepEqual(lines.texts, ['Run a-1: Apply of Stack x/a', 'größer rot', 'Planning', 'Applying', '100%', 'Planning', 'Succeeded'])
    equal(lines.offset, new TextEncoder().encode(stored.map(line => `${line}\n`).join('')).length)
    equal(lines.timesMs[3], Date.parse('2026-06-01T10:00:03Z'))
    deepEqual(lines.spansOf(1), [{ start: 7, end: 10, classes: 'ansi-red' }])
    deepEqual(lines.sections, [
      { title: 'Preparing', line: 0 },
      { title: 'Planning', line: 2 },
      { title: 'Applying', line: 3 },
    ])
  }
})

test('after a lost connection the log continues at the beginning of the line that had not arrived', () => {
  const lines = new LogLines()
  const complete = new TextEncoder().encode(at(0, 'one'))
  lines.push(new TextEncoder().encode(`${at(0, 'one')}2026-06-01T10:00:01Z tw`))
  lines.restart()
  equal(lines.offset, complete.length - 21)
  lines.push(new TextEncoder().encode(at(1, 'two')))
  deepEqual(lines.texts, ['one', 'two'])
})

test('the last line of a log need not end, and times may be unknown', () => {
  const lines = new LogLines()
  lines.push(new TextEncoder().encode(`${'-'.repeat(20)} one\n${'-'.repeat(20)} two`))
  equal(lines.length, 1)
  lines.end()
  deepEqual(
    [lines.texts, lines.timesMs],
    [
      ['one', 'two'],
      [0, 0],
    ],
  )
})

test('a line without control characters shows what reverses its text', () => {
  const lines = new LogLines()
  lines.push(new TextEncoder().encode(at(0, 'a \u202egnp.exe')))
  deepEqual(lines.texts, ['a \\u202egnp.exe'])
})

test('a line that is cut has the columns of what is shown and of the note about the rest', () => {
  const lines = new LogLines()
  lines.push(new TextEncoder().encode(at(0, 'x'.repeat(maxShownCharacters)) + at(1, 'x'.repeat(maxShownCharacters + 1))))
  const note = ' … 1 more character: download the log to read them'
  equal(lines.columns[0], maxShownCharacters)
  ok((lines.columns[1] as number) >= maxShownCharacters + note.length, `${lines.columns[1]} columns`)
})
