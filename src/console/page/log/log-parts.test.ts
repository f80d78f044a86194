import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { findLines, rangesIn } from './find-lines.ts'
import { piecesOf } from './line-pieces.ts'
import { LineRows } from './line-rows.ts'
import { textColumns } from './text-columns.ts'

test('lines are found without regard to case, and signs are no patterns', () => {
  deepEqual(findLines(['Error: a.b', 'error: axb', 'fine'], 'ERROR: a.'), [0])
  deepEqual(findLines(['a', 'a', 'b'], 'a', 1), [1])
  deepEqual(findLines(['a'], ''), [])
  deepEqual(rangesIn('aXbxa', 'x'), [
    { start: 1, end: 2 },
    { start: 3, end: 4 },
  ])
  deepEqual(rangesIn('a[0-9]', '[0-9]'), [{ start: 1, end: 6 }])
})

test('a line is divided where its colours and matches begin and end', () => {
  deepEqual(piecesOf('plain', [], []), [{ text: 'plain', classes: '', isMatch: false }])
  deepEqual(
    piecesOf('abcdef', [{ start: 1, end: 4, classes: 'ansi-red' }], [{ start: 3, end: 5 }]).map(({ text, classes, isMatch }) => [
      text,
      classes,
      isMatch,
    ]),
    [
      ['a', '', false],
      ['bc', 'ansi-red', false],
      ['d', 'ansi-red', true],
      ['e', '', true],
      ['f', '', false],
    ],
  )
})

test('what is beyond the end of a line that is cut has no piece', () => {
  const spans = [
    { start: 0, end: 2, classes: 'ansi-red' },
    { start: 2, end: 9, classes: 'ansi-green' },
    { start: 9, end: 12, classes: 'ansi-blue' },
  ]
  deepEqual(
    piecesOf('abcd', spans, []).map(({ text, classes }) => [text, classes]),
    [
      ['ab', 'ansi-red'],
      ['cd', 'ansi-green'],
    ],
  )
})

const sections = [
  { title: 'Preparing', line: 0 },
  { title: 'Planning', line: 4 },
  { title: 'Applying', line: 6 },
] as const

test('of a folded phase only the first line has a row', () => {
  const open = new LineRows({ length: 10, sections, folded: new Set() })
  deepEqual([open.rows, open.lineAt(5), open.rowOf(5)], [10, 5, 5])
  const folded = new LineRows({ length: 10, sections, folded: new Set(['Preparing', 'Applying']) })
  equal(folded.rows, 4)
  deepEqual(
    [0, 1, 2, 3].map(row => folded.lineAt(row)),
    [0, 4, 5, 6],
  )
  deepEqual(
    [0, 3, 4, 5, 6, 9].map(line => folded.rowOf(line)),
    [0, 0, 1, 2, 3, 3],
  )
  deepEqual(folded.linesOf(0, 3), [0, 4, 5])
  const none = { sections: [], folded: new Set<string>() }
  deepEqual([new LineRows({ length: 3, ...none }).rows, new LineRows({ length: 0, ...none }).rows], [3, 0])
  deepEqual(new LineRows({ length: 0, ...none }).linesOf(0, 0), [])
})

test('a wrapped line has several rows, and each of them leads to it', () => {
  const rows = new LineRows({ length: 8, sections, folded: new Set(['Planning']), rowsOf: line => (line % 2) + 1 })
  // 0 | 1 1 | 2 | 3 3 | 4 (5 is folded) | 6 | 7 7
  deepEqual(
    Array.from({ length: rows.rows }, (_, row) => rows.lineAt(row)),
    [0, 1, 1, 2, 3, 3, 4, 6, 7, 7],
  )
  deepEqual(
    [0, 1, 3, 5, 6, 7].map(line => rows.rowOf(line)),
    [0, 1, 4, 6, 7, 8],
  )
  deepEqual(rows.linesOf(2, 8), [1, 2, 3, 4, 6])
})

test('columns are those of a terminal', () => {
  deepEqual(
    ['', 'plain text', 'größer', 'a\tb', '\u001fx', '日本', 'e\u0301', '✅ done', '╷ Error'].map(textColumns),
    [0, 10, 6, 9, 2, 4, 1, 7, 7],
  )
})
