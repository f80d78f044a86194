import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { colorPaint } from './style.ts'
import { renderTable } from './table.ts'

test('pads columns to their widest cell, without trailing spaces', () => {
  deepEqual(
    renderTable(
      ['NAME', 'READY', 'REASON'],
      [
        ['network', 'True', 'Applied'],
        ['a', 'False', ''],
      ],
    ),
    ['NAME      READY   REASON', 'network   True    Applied', 'a         False'],
  )
})

test('does not count color codes as columns', () => {
  deepEqual(renderTable(['A', 'B'], [[colorPaint('red', 'x'), 'y']]), ['A   B', '\u001b[31mx\u001b[39m   y'])
})

test('prints only the header without rows', () => deepEqual(renderTable(['NAME', 'AGE'], []), ['NAME   AGE']))

test('a cell cannot add lines to a table, reverse its text or hide characters, and keeps its colors', () => {
  const cells = ['x\ny   True', 'a\u202eb\u200bc', `${colorPaint('red', 'd\r')}\u001b[2K\u009b2J\t`]
  deepEqual(renderTable(['A', 'B', 'C'], [cells]), [
    'A             B                 C',
    'x\\ny   True   a\\u202eb\\u200bc   \u001b[31md\\r\u001b[39m\\u001b[2K\\u009b2J\\t',
  ])
})
