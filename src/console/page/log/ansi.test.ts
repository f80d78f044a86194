import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { plainStyle, readAnsi } from './ansi.ts'

const esc = '\u001b'

for (const { name, line, text, spans } of [
  { name: 'no escape', line: 'plain <b>', text: 'plain <b>', spans: [] },
  { name: 'red and reset', line: `a ${esc}[31mred${esc}[0m b`, text: 'a red b', spans: [[2, 5, 'ansi-red']] },
  { name: 'bold green in one sequence', line: `${esc}[1;32mok${esc}[m!`, text: 'ok!', spans: [[0, 2, 'ansi-green ansi-bold']] },
  {
    name: 'bright colours',
    line: `${esc}[91ma${esc}[90mb`,
    text: 'ab',
    spans: [
      [0, 1, 'ansi-red'],
      [1, 2, 'ansi-grey'],
    ],
  },
  { name: '256 colours', line: `${esc}[38;5;196mx${esc}[39my`, text: 'xy', spans: [[0, 1, 'ansi-red']] },
  { name: 'true colour', line: `${esc}[38;2;10;200;190mx`, text: 'x', spans: [[0, 1, 'ansi-cyan']] },
  { name: 'a background is left out', line: `${esc}[41;37mx${esc}[48;5;2my`, text: 'xy', spans: [] },
  {
    name: 'moves of the cursor, links and bells',
    line: `${esc}[2K${esc}]8;;http://evil${esc}\\link${esc}]8;;${esc}\\\u0007`,
    text: 'link',
    spans: [],
  },
  { name: 'what reverses text', line: `${esc}[31ma\u202eb${esc}[0mc`, text: 'a\\u202ebc', spans: [[0, 8, 'ansi-red']] },
  { name: 'a sequence that does not end', line: `x${esc}[31`, text: 'x31', spans: [] },
])
  test(`reads the colours of a line: ${name}`, () => {
    const read = readAnsi(line, plainStyle)
    deepEqual([read.text, read.spans.map(({ start, end, classes }) => [start, end, classes])], [text, spans])
  })

test('a colour continues on the next line until it is reset', () => {
  const first = readAnsi(`${esc}[33mwarning`, plainStyle)
  const second = readAnsi(`more${esc}[0m rest`, first.style)
  deepEqual(second.spans, [{ start: 0, end: 4, classes: 'ansi-yellow' }])
  deepEqual(second.style, plainStyle)
})
