import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { type MarkedLine, watchLines } from './watch-lines.ts'

async function read(text: string, chunkBytes: number): Promise<Record<string, unknown>[]> {
  const bytes = Buffer.from(text)
  const chunks = (async function* () {
    for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes)
  })()
  const all: MarkedLine[] = []
  for await (const lines of watchLines(chunks)) all.push(...lines)
  return all.map(({ ...rest }) => ({
    ...rest,
    ...('line' in rest && { line: Buffer.from(rest.line).toString() }),
    ...('leaving' in rest && rest.leaving && { leaving: Buffer.from(rest.leaving).toString() }),
  }))
}

const selected = { namespace: 'n', name: 'x y', uid: 'u', after: { fields: { f: 'a } b' } }, before: { fields: { f: '' } } }
const values = JSON.stringify(selected)
const text = [
  '0 {"type":"ADDED"}',
  '17 {"type":"MODIFIED"}',
  'M12 {}',
  'L18 {"type":"DELETED"}',
  `S18 ${values.length} ${values}{"type":"MODIFIED"}`,
  'B20 {"type":"BOOKMARK"}',
  'E {"type":"ERROR"}',
  '',
].join('\n')

for (const chunkBytes of [1, 7, 1_000])
  test(`lines are read with their marks, in chunks of ${chunkBytes} bytes`, async () => {
    deepEqual(await read(text, chunkBytes), [
      { kind: 'initial', line: '{"type":"ADDED"}\n' },
      { kind: 'event', revision: 17, line: '{"type":"MODIFIED"}\n' },
      { kind: 'map', revision: 12 },
      { kind: 'event', revision: 18, line: '{"type":"MODIFIED"}\n', selected, leaving: '{"type":"DELETED"}\n' },
      { kind: 'bookmark', revision: 20, line: '{"type":"BOOKMARK"}\n' },
      { kind: 'error', line: '{"type":"ERROR"}\n' },
    ])
  })

for (const garbage of [
  '{"type":"ADDED"}\n',
  '<html>\n',
  '12 <html>\n',
  '12 {"type":"ADD\n',
  'x12 {}\n',
  ' {}\n',
  'S12 {}\n',
  'S12 900 {}{}\n',
  'S12 3 {}}{}\n',
  'B {}\n',
  '99999999999999999999 {}\n',
  '\n',
  '12 {"type":"ADDED"}',
])
  test(`what is no marked line is not passed on: ${JSON.stringify(garbage)}`, async () => {
    await rejects(read(garbage, 5), /no marked event|ended within a line/)
  })
