import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { choosePaint, colorPaint, cut, oneLine, plainPaint, visibleWidth } from './style.ts'

for (const [name, stream, env, want] of [
  ['a terminal gets colours', { isTTY: true }, {}, colorPaint],
  ['a pipe gets none', {}, {}, plainPaint],
  ['NO_COLOR is honoured', { isTTY: true }, { NO_COLOR: '1' }, plainPaint],
  ['an empty NO_COLOR says nothing', { isTTY: true }, { NO_COLOR: '' }, colorPaint],
  ['a dumb terminal gets none', { isTTY: true }, { TERM: 'dumb' }, plainPaint],
  ['FORCE_COLOR colours a pipe', {}, { FORCE_COLOR: '1', NO_COLOR: '1' }, colorPaint],
] as const) {
  test(name, () => equal(choosePaint(stream, env), want))
}

for (const [text, width, want] of [
  ['network', 7, 'network'],
  ['network', 6, 'netwo…'],
  ['network', 1, '…'],
  ['network', 0, ''],
] as const) {
  test(`"${text}" cut to ${width} is "${want}"`, () => equal(cut(text, width), want))
}

test('oneLine() leaves no control character that could move a cursor', () => {
  equal(oneLine('a\nb\u001b[2Jc'), 'a b·[2Jc')
  equal(visibleWidth(colorPaint('green', 'ok')), 2)
})
