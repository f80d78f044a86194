import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { findLines, rangesIn } from './find-lines.ts'
import { FoldedLines } from './folded-lines.ts'
import { piecesOf } from './line-pieces.ts'

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

test('of a folded phase only the first line has a row', () => {
  const sections = [
    { title: 'Preparing', line: 0 },
    { title: 'Planning', line: 4 },
    { title: 'Applying', line: 6 },
  ] as const
  const open = new FoldedLines(10, sections, new Set())
  deepEqual([open.rows, open.lineAt(5), open.rowOf(5)], [10, 5, 5])
  const folded = new FoldedLines(10, sections, new Set(['Preparing', 'Applying']))
  equal(folded.rows, 4)
  deepEqual(
    [0, 1, 2, 3].map(row => folded.lineAt(row)),
    [0, 4, 5, 6],
  )
  deepEqual(
    [0, 3, 4, 5, 6, 9].map(line => folded.rowOf(line)),
    [0, 0, 1, 2, 3, 3],
  )
  deepEqual([new FoldedLines(3, [], new Set()).rows, new FoldedLines(0, [], new Set()).rows], [3, 0])
})
