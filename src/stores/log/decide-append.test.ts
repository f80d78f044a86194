import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { decideAppend, decideEnd, emptyLog, type LogState } from './decide-append.ts'

const limits = { bytesPerRun: 100, lineBytes: 10 }

/** Plays appends, each at the right offset, and the end; what is stored. */
function play(parts: string[], end = true, useLimits = limits): { text: string; state: LogState } {
  let state = emptyLog
  let text = ''
  for (const part of parts) {
    const decision = decideAppend(state, state.received, Buffer.from(part), useLimits)
    if (decision.kind !== 'append') continue
    text += decision.output.toString('latin1')
    state = decision.state
  }
  if (end) {
    const ended = decideEnd(state, useLimits)
    text += ended.output.toString('latin1')
    state = ended.state
  }
  return { text: Buffer.from(text, 'latin1').toString(), state }
}

for (const { name, parts, want } of [
  { name: 'stores lines unchanged', parts: ['one\n', 'two\n'], want: 'one\ntwo\n' },
  { name: 'terminates the last line with a newline', parts: ['one\ntw', 'o'], want: 'one\ntwo\n' },
  { name: 'stores nothing without input', parts: [], want: '' },
  { name: 'keeps a line of exactly the limit', parts: ['0123456789\nx\n'], want: '0123456789\nx\n' },
  {
    name: 'cuts a longer line and adds a mark',
    parts: ['0123456789abc\nx\n'],
    want: '0123456789 [oarlock] line cut at 10 bytes, 3 more bytes dropped\nx\n',
  },
  {
    name: 'cuts a line that spans several appends',
    parts: ['01234567', '89a', 'bc', '\nx\n'],
    want: '0123456789 [oarlock] line cut at 10 bytes, 3 more bytes dropped\nx\n',
  },
  {
    name: 'cuts a last line without a newline',
    parts: ['0123456789abc'],
    want: '0123456789 [oarlock] line cut at 10 bytes, 3 more bytes dropped\n',
  },
  {
    name: 'does not split a multi-byte character',
    parts: ['012345678ü\n'],
    want: '012345678 [oarlock] line cut at 10 bytes, 2 more bytes dropped\n',
  },
]) {
  test(`decideAppend: ${name}`, () => equal(play(parts).text, want))
}

test('keeps whole lines at the limit and counts the dropped bytes', () => {
  const { text, state } = play(Array.from({ length: 12 }, (_, i) => `line ${String(i).padStart(4, '0')}\n`))
  const kept = Array.from({ length: 10 }, (_, i) => `line ${String(i).padStart(4, '0')}\n`).join('')
  const marks =
    '[oarlock] log truncated: limit of 100 bytes reached, further output is dropped\n' +
    '[oarlock] log truncated: limit of 100 bytes reached, 20 more bytes dropped\n'
  equal(text, kept + marks)
  equal(state.received, 120)
})

test('formats limits in binary units', () => {
  const line = 'x'.repeat(1023)
  const { text } = play([`${line}\n${line}\n`], true, { bytesPerRun: 1024, lineBytes: 2048 })
  ok(text.includes('limit of 1 KiB reached, 1024 more bytes dropped'), text)
  ok(
    play(['ab'.repeat(9_000)], true, { bytesPerRun: 10 * 1024 * 1024, lineBytes: 16 * 1024 }).text.includes(
      'line cut at 16 KiB, 1616 more',
    ),
  )
})

const at = (received: number, ended = false): LogState => ({ ...emptyLog, received, size: received, ended })
for (const { name, state, offset, bytes, want } of [
  { name: 'reports a repeated append as duplicate', state: at(4), offset: 0, bytes: 'abc\n', want: { kind: 'duplicate' } },
  {
    name: 'reports a repeated append as duplicate after the end',
    state: at(4, true),
    offset: 0,
    bytes: 'abc\n',
    want: { kind: 'duplicate' },
  },
  { name: 'rejects a gap with the expected offset', state: at(4), offset: 5, bytes: 'x', want: { kind: 'gap', expected: 4 } },
  { name: 'rejects an append after the end', state: at(4, true), offset: 4, bytes: 'x', want: { kind: 'ended' } },
]) {
  test(`decideAppend: ${name}`, () => deepStrictEqual(decideAppend(state, offset, Buffer.from(bytes), limits), want))
}

test('stores only the new part of an overlapping append', () => {
  const decision = decideAppend(at(4), 2, Buffer.from('c\nnew\n'), limits)
  equal(decision.kind === 'append' && decision.output.toString(), 'new\n')
})

test('stores the same within the limits however the input is divided into appends (invariant 10)', () => {
  const text = fc.array(fc.constantFrom('a', 'ü', '\n', 'line\n', 'long line '), { maxLength: 60 }).map(parts => parts.join(''))
  fc.assert(
    fc.property(text, fc.array(fc.nat(30), { maxLength: 12 }), (whole, cuts) => {
      const bytes = Buffer.from(whole)
      let state = emptyLog
      const stored: Buffer[] = []
      const append = (from: number, to: number) => {
        const decision = decideAppend(state, from, bytes.subarray(from, to), limits)
        if (decision.kind !== 'append') return
        stored.push(decision.output)
        state = decision.state
      }
      for (const cut of cuts) append(Math.max(0, state.received - (cut % 3)), Math.min(bytes.byteLength, state.received + cut))
      append(state.received, bytes.byteLength)
      const end = decideEnd(state, limits)
      const all = Buffer.concat([...stored, end.output])
      equal(end.state.size, all.byteLength)
      equal(state.received, bytes.byteLength)
      ok(all.byteLength <= limits.bytesPerRun + 200)
      ok(all.byteLength === 0 || all.at(-1) === 10)
      const isShort = whole.split('\n').every(line => Buffer.byteLength(line) <= limits.lineBytes)
      if (isShort && bytes.byteLength < limits.bytesPerRun) equal(all.toString().replace(/\n$/, ''), whole.replace(/\n$/, ''))
    }),
    { numRuns: 300 },
  )
})
