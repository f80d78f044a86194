import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { choosePaint, colorPaint, oneLine, plainPaint, truncate, visibleWidth } from './style.ts'

for (const [name, stream, env, want] of [
  ['a terminal gets colors', { isTTY: true }, {}, colorPaint],
  ['a pipe gets no colors', {}, {}, plainPaint],
  ['NO_COLOR disables colors', { isTTY: true }, { NO_COLOR: '1' }, plainPaint],
  ['an empty NO_COLOR is ignored', { isTTY: true }, { NO_COLOR: '' }, colorPaint],
  ['TERM=dumb disables colors', { isTTY: true }, { TERM: 'dumb' }, plainPaint],
  ['FORCE_COLOR forces colors on a pipe', {}, { FORCE_COLOR: '1', NO_COLOR: '1' }, colorPaint],
] as const) {
  test(name, () => equal(choosePaint(stream, env), want))
}

for (const [text, width, want] of [
  ['network', 7, 'network'],
  ['network', 6, 'netwo…'],
  ['network', 1, '…'],
  ['network', 0, ''],
] as const) {
  test(`"${text}" truncated to ${width} columns is "${want}"`, () => equal(truncate(text, width), want))
}

test('oneLine() replaces control characters and those that reverse or hide text', () => {
  equal(oneLine('a\nb\u001b[2Jc\u202ed\u200be'), 'a b·[2Jc·d·e')
  equal(visibleWidth(colorPaint('green', 'ok')), 2)
})
