import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { lineDiff } from './line-diff.ts'

const format = (from: string, to: string) => lineDiff(from, to).map(({ sign, text }) => `${sign}${text}`)

for (const { name, from, to, want } of [
  { name: 'equal texts do not differ', from: 'a\nb', to: 'a\nb', want: [] },
  { name: 'a line that is added in the middle', from: 'a\nc', to: 'a\nb\nc', want: [' a', '+b', ' c'] },
  { name: 'a line that is replaced', from: 'a\nb\nc', to: 'a\nx\nc', want: [' a', '-b', '+x', ' c'] },
  { name: 'everything is new', from: '', to: 'a\nb', want: ['-', '+a', '+b'] },
  { name: 'two changes with a common line between them', from: 'a\nb\nc', to: 'x\nb\ny', want: ['-a', '+x', ' b', '-c', '+y'] },
])
  test(name, () => deepEqual(format(from, to), want))

test('lines that are far from a change are left out', () => {
  const lines = Array.from({ length: 20 }, (_, index) => String(index))
  deepEqual(format(lines.join('\n'), lines.with(10, 'ten').join('\n')), [' 7', ' 8', ' 9', '-10', '+ten', ' 11', ' 12', ' 13', '…'])
})
