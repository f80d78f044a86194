import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { visibleText } from './visible-text.ts'

for (const { name, text, want } of [
  { name: 'what reverses text', text: 'a\u202eb\u2066c\u2069', want: 'a\\u202eb\\u2066c\\u2069' },
  { name: 'control characters', text: '\u001b[2Ja\rb\u009b', want: '\\u001b[2Ja\\u000db\\u009b' },
  { name: 'line separators', text: 'a\u2028b', want: 'a\\u2028b' },
])
  test(`shows ${name}`, () => equal(visibleText(text), want))

test('keeps tabs, line feeds and text of any script', () => {
  const text = 'a\tb\nü שלום مرحبا 日本 👩\u200d💻'
  equal(visibleText(text), text)
})
