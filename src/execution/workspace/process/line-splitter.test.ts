import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLineSplitter, type Unsplittable } from './index.ts'

function split(chunks: (string | Buffer)[], maxLineBytes?: number, unsplittable?: Unsplittable): string[] {
  const lines: string[] = []
  const splitter = createLineSplitter(line => lines.push(line), { maxLineBytes, unsplittable })
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

const unsplittable = (...texts: string[]): Unsplittable => ({
  maxLength: Math.max(...texts.map(({ length }) => length)),
  findAcross: (text, at) => {
    for (const found of texts) {
      for (let start = text.indexOf(found); start >= 0; start = text.indexOf(found, start + 1))
        if (start < at && at < start + found.length) return { start, end: start + found.length }
    }
    return undefined
  },
})

for (const { name, texts, line, want } of [
  { name: 'before the text at the limit', texts: ['secret'], line: 'xxxxxsecretyyyyyyyy', want: ['xxxxx', 'secretyy', 'yyyyyy'] },
  { name: 'before overlapping texts', texts: ['abcde', 'defgh'], line: 'xxxabcdefghyyyyyyyy', want: ['xxx', 'abcdefgh', 'yyyyyyyy'] },
  { name: 'after a text that is longer than the limit', texts: ['0123456789'], line: '0123456789yyy', want: ['0123456789', 'yyy'] },
  {
    name: 'between characters of several bytes',
    texts: ['sécrèt'],
    line: 'äsécrètyyyyyyyyyyyy',
    want: ['ä', 'sécrèt', 'yyyyyyyy', 'yyyy'],
  },
])
  test(`splits a long line ${name}, in whatever chunks it arrives`, () => {
    const bytes = Buffer.from(line)
    for (let size = 1; size <= bytes.length; size++) {
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
      for (const end of ['', '\n']) {
        const lines = split([...chunks, end], 8, unsplittable(...texts))
        assert.equal(lines.join(''), line)
        for (const text of texts)
          assert.ok(
            lines.some(part => part.includes(text)),
            `${JSON.stringify(lines)} for chunks of ${size}`,
          )
        if (size === bytes.length && end === '\n') assert.deepEqual(lines, want)
      }
    }
  })

test('property: no unsplittable text is divided, and no character is lost', () => {
  const texts = ['aaaa', 'abab', 'éé']
  fc.assert(
    fc.property(fc.array(fc.constantFrom('a', 'b', 'é', 'x'), { maxLength: 60 }), fc.integer({ min: 1, max: 9 }), (letters, size) => {
      const line = letters.join('')
      const bytes = Buffer.from(line)
      const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
      const lines = split(chunks, 8, unsplittable(...texts))
      assert.equal(lines.join(''), line)
      let at = 0
      for (const part of lines) {
        at += part.length
        assert.equal(at < line.length ? unsplittable(...texts).findAcross(line, at) : undefined, undefined, JSON.stringify(lines))
      }
    }),
  )
})

/** A log that is full, and what was passed on. */
function splitFull(chunks: readonly string[], isForLogOnly: (bytes: Buffer) => boolean, maxLineBytes = 64) {
  const lines: string[] = []
  let droppedBytes = 0
  const drop = (bytes: number) => {
    droppedBytes += bytes
  }
  const log = { isFull: true, drop }
  const splitter = createLineSplitter(line => lines.push(line), { maxLineBytes, log, isForLogOnly })
  for (const chunk of chunks) splitter.push(Buffer.from(chunk))
  const before = [...lines]
  splitter.end()
  return { before, atEnd: lines.slice(before.length), droppedBytes }
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('')

for (const { name, chunks, isForLogOnly = () => true, before = [], atEnd, droppedBytes } of [
  {
    name: 'only the last five lines are decoded, at the end',
    chunks: [numbered(0, 100), numbered(100, 200)],
    atEnd: ['line 195', 'line 196', 'line 197', 'line 198', 'line 199'],
    droppedBytes: numbered(0, 195).length,
  },
  {
    name: 'a line in two chunks, and one without an end',
    chunks: ['a\nb', 'b\nc\nd'],
    atEnd: ['a', 'bb', 'c', 'd'],
    droppedBytes: 0,
  },
  {
    name: 'what the engine needs is passed on',
    chunks: [`${numbered(0, 10)}::progress 1/2\n${numbered(10, 20)}`, `${numbered(20, 30)}`],
    isForLogOnly: (bytes: Buffer) => !bytes.includes('::progress'),
    before: ['::progress 1/2'],
    atEnd: ['line 25', 'line 26', 'line 27', 'line 28', 'line 29'],
    droppedBytes: numbered(0, 25).length,
  },
  {
    name: 'the rest of a long line of which a part was dropped is not passed on: half a secret would not be recognized',
    chunks: ['x'.repeat(100), 'y'.repeat(100), 'half a secret\nnext\n'],
    atEnd: ['next'],
    droppedBytes: 214,
  },
  {
    name: 'a long line that the engine needs is split as ever',
    chunks: ['x'.repeat(70), '\n'],
    isForLogOnly: () => false,
    before: ['x'.repeat(64), 'x'.repeat(6)],
    atEnd: [],
    droppedBytes: 0,
  },
] as {
  name: string
  chunks: string[]
  isForLogOnly?: (bytes: Buffer) => boolean
  before?: string[]
  atEnd: string[]
  droppedBytes: number
}[])
  test(`while the log is full: ${name}`, () => assert.deepEqual(splitFull(chunks, isForLogOnly), { before, atEnd, droppedBytes }))
