import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { createControlEscaper, escapeControls } from './escape-controls.ts'
import { colorPaint } from './style.ts'

for (const { name, text, want } of [
  { name: 'the title of the window', text: '\u001b]0;owned\u0007', want: '\\u001b]0;owned\\u0007' },
  { name: 'a cleared screen', text: '\u001b[2J\u001b[H', want: '\\u001b[2J\\u001b[H' },
  { name: 'a moved cursor', text: 'evil\rgood\b\u001b[1A', want: 'evil\\u000dgood\\u0008\\u001b[1A' },
  { name: 'concealed text', text: '\u001b[8msecret', want: '\\u001b[8msecret' },
  { name: 'the 8-bit form', text: '\u009b2J', want: '\\u009b2J' },
  { name: 'what reverses text', text: 'a\u202eb\u2066c', want: 'a\\u202eb\\u2066c' },
  { name: 'a link', text: '\u001b]8;;http://evil\u001b\\good', want: '\\u001b]8;;http://evil\\u001b\\good' },
])
  test(`escapes ${name}`, () => equal(escapeControls(text), want))

test('keeps colors, tabs, line ends and other characters', () => {
  const text = `${colorPaint('red', 'a')}\t${colorPaint('dim', 'ü')}\n→\u001b[0m\u001b[m שלום مرحبا 👩\u200d💻`
  equal(escapeControls(text), text)
})

test('the value of JSON text stays the same', () => {
  const value = { text: '\u007f\u009b\u001b[2J' }
  deepEqual(JSON.parse(escapeControls(JSON.stringify(value))), value)
})

test('in a stream, sequences and characters may be divided anywhere', () => {
  const text = 'ü\u001b[31mred\u001b[39m\u001b[2J\u001b]0;x\u0007\u001b'
  const bytes = Buffer.from(text)
  for (let size = 1; size < 8; size++) {
    let written = ''
    const escaper = createControlEscaper(piece => {
      written += piece
    })
    for (let at = 0; at < bytes.length; at += size) escaper.push(bytes.subarray(at, at + size))
    escaper.end()
    equal(written, escapeControls(text), `pieces of ${size} bytes`)
  }
})
