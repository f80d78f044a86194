import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
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

test('prints only the header without rows', () => deepEqual(renderTable(['NAME', 'AGE'], []), ['NAME   AGE']))

test('a cell cannot add lines to a table, color or reverse its text, or hide characters', () => {
  const cells = ['x\ny   True', 'a\u202eb\u200bc', '\u001b[31md\r\u001b[39m\u001b[2K\u009b2J\t']
  deepEqual(renderTable(['A', 'B', 'C'], [cells]), [
    'A             B                 C',
    'x\\ny   True   a\\u202eb\\u200bc   \\u001b[31md\\r\\u001b[39m\\u001b[2K\\u009b2J\\t',
  ])
})
