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

test('a review that fails ends no token early and extends none', async () => {
  const { state, tokens } = fixture()
  await tokens.review('a', undefined)
  state.answer = down
  state.nowMs += 9_000
  equal(tokens.find('a')?.user.name, 'worker')
  await settled()
  equal(state.asked, 2)
  state.nowMs += 1_000
  equal(tokens.find('a'), undefined)
  await rejects(tokens.review('a', undefined), /home does not answer/)
})

test('a token ends when it states so, also while its review is valid', async () => {
  const { state, tokens } = fixture()
  const short = `x.${encode({ exp: 1_005 })}.y`
  await tokens.review(short, undefined)
  equal(tokens.find(short)?.user.name, 'worker')
  state.nowMs = 1_005_000
  equal(tokens.find(short), undefined)
})
