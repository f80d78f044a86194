import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { colorPaint } from './style.ts'
import { renderTable } from './table.ts'

test('columns are as wide as their widest cell and lines end without spaces', () => {
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

test('colour codes take no columns', () => {
  deepEqual(renderTable(['A', 'B'], [[colorPaint('red', 'x'), 'y']]), ['A   B', '\u001b[31mx\u001b[39m   y'])
})

test('no rows leave the header', () => deepEqual(renderTable(['NAME', 'AGE'], []), ['NAME   AGE']))
