import { deepEqual, throws } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter, WatchDecodeError } from './index.ts'

test('returns whole lines wherever the chunks end, including within a character', () => {
  const line = fc.string({ unit: fc.constantFrom('a', '"', 'é', '€', '🚣', ' ') })
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.integer({ min: 1, max: 9 })), (lines, sizes) => {
      const bytes = Buffer.from(lines.map(text => `${text}\n`).join(''))
      const splitter = new LineSplitter()
      const got: string[] = []
      for (let start = 0, turn = 0; start < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] ?? bytes.length
        got.push(...splitter.push(bytes.subarray(start, start + size)))
        start += size
      }
      deepEqual(
        got,
        lines.filter(text => text !== ''),
      )
      deepEqual(splitter.bufferedBytes, 0)
    }),
  )
})

test('invariant 10: an unfinished line is buffered up to the limit only', () => {
  const splitter = new LineSplitter(10)
  deepEqual(splitter.push(Buffer.from('0123456789')), [])
  throws(() => splitter.push(Buffer.from('0')), WatchDecodeError)
})
