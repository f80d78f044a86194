import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { escapeHidden, visibleText } from './escape-hidden.ts'

for (const { name, text, want } of [
  { name: 'line ends and tabs', text: 'a\r\n\tb', want: 'a\\r\\n\\tb' },
  { name: 'terminal sequences of 7 and of 8 bits', text: '\u001b[2K\u009b2J\u007f', want: '\\u001b[2K\\u009b2J\\u007f' },
  { name: 'marks and overrides of the direction', text: 'a\u202eb\u2066c\u200fd', want: 'a\\u202eb\\u2066c\\u200fd' },
  { name: 'characters without a width', text: 'a\u200b\u2060\ufeff\u00adb', want: 'a\\u200b\\u2060\\ufeff\\u00adb' },
  { name: 'line separators', text: 'a\u2028b\u2029', want: 'a\\u2028b\\u2029' },
  { name: 'tags beyond 16 bits', text: '\u{e0041}', want: '\\udb40\\udc41' },
])
  test(`escapes ${name}`, () => equal(escapeHidden(text), want))

test('keeps text of any script', () => {
  const text = 'ü → שלום مرحبا 日本 🚣 e\u0301'
  equal(escapeHidden(text), text)
})

test('the value of JSON text stays the same', () => {
  const value = 'a\u007f\u009b\u202e\u{e0041}'
  equal(JSON.parse(escapeHidden(JSON.stringify(value))), value)
})

for (const { name, text, want } of [
  { name: 'what reverses text', text: 'a\u202eb\u2066c\u2069', want: 'a\\u202eb\\u2066c\\u2069' },
  { name: 'control characters', text: '\u001b[2Ja\rb\u009b', want: '\\u001b[2Ja\\u000db\\u009b' },
  { name: 'line separators', text: 'a\u2028b', want: 'a\\u2028b' },
])
  test(`makes ${name} visible`, () => equal(visibleText(text), want))

test('lines of visible text keep tabs, line feeds and what other scripts need', () => {
  const text = 'a\tb\nü שלום مرحبا\u200f 日本 👩\u200d💻'
  equal(visibleText(text), text)
})
