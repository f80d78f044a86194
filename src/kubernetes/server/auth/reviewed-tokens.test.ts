import { equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { ReviewedTokens } from './reviewed-tokens.ts'
import { encode } from './signing-key.ts'
import type { User } from './user.ts'

function fixture() {
  const state = { nowMs: 1_000_000, asked: 0, answer: async (): Promise<User | undefined> => ({ name: 'worker', groups: [] }) }
  const tokens = new ReviewedTokens(
    async () => {
      state.asked++
      return await state.answer()
    },
    () => state.nowMs,
    { patienceMs: 20 },
  )
  return { state, tokens }
}
const down = async () => {
  throw new Error('home does not answer')
}
const settled = () => new Promise(resolve => setImmediate(resolve))

test('a token in use is reviewed again before its review ends, and ends with its owner', async () => {
  const { state, tokens } = fixture()
  await tokens.review('a', undefined)
  const found = tokens.find('a')
  equal(found?.user.name, 'worker')
  state.nowMs += 6_000
  equal(found?.isLive?.(), true)
  await settled()
  equal(state.asked, 2)
  state.nowMs += 9_000
  equal(tokens.find('a') !== undefined, true)
  await settled()
  state.answer = async () => undefined
  state.nowMs += 6_000
  equal(found?.isLive?.(), true)
  await settled()
  equal(found?.isLive?.(), false)
  equal(tokens.find('a'), undefined)
  // What was found invalid is not accepted because the other server fails later.
  state.answer = down
  await rejects(tokens.review('a', undefined), /home does not answer/)
})

test('while the other server does not answer, what it knew stays valid, until it expires itself or for twelve hours', async () => {
  const { state, tokens } = fixture()
  const short = `x.${encode({ exp: 1_900 })}.y`
  await tokens.review('a', undefined)
  await tokens.review(short, undefined)
  state.answer = down
  state.nowMs += 60_000
  equal(tokens.find('a'), undefined)
  await tokens.review('a', undefined)
  equal(tokens.find('a')?.user.name, 'worker')
  await rejects(tokens.review('b', undefined), /home does not answer/)
  state.nowMs = 1_900_001
  await tokens.review(short, undefined)
  equal(tokens.find(short), undefined)
  state.nowMs += 12 * 3_600_000
  await rejects(tokens.review('a', undefined), /home does not answer/)
})

test('another server that is silent delays a known token for a moment only', async () => {
  const { state, tokens } = fixture()
  await tokens.review('a', undefined)
  state.answer = () => new Promise(() => {})
  state.nowMs += 60_000
  await tokens.review('a', undefined)
  equal(tokens.find('a')?.user.name, 'worker')
})
