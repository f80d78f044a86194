import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../kubernetes/object/index.ts'
import { LimitExceededError } from '../../kubernetes/util/index.ts'
import { rememberReviews } from './remembered-reviews.ts'
import type { ReviewedUser } from './review-resources.ts'

const ann: ReviewedUser = { name: 'ann', groups: [] }
const tokenUntil = (seconds: number) => `x.${Buffer.from(JSON.stringify({ exp: seconds })).toString('base64url')}.y`

function fixture(options: { patienceMs?: number } = {}) {
  const state = { nowMs: 1_000_000, asked: 0, answer: async (): Promise<ReviewedUser | undefined> => ann }
  const review = rememberReviews(
    async () => {
      state.asked++
      return await state.answer()
    },
    { nowMs: () => state.nowMs, maxStaleMs: 3_600_000, ...options },
  )
  return { state, review }
}
const down = async () => {
  throw new Error('connection refused')
}

test('while the partition does not answer, a token that was valid stays valid, without a request for each use', async () => {
  const { state, review } = fixture()
  deepEqual(await review('token'), ann)
  state.answer = down
  deepEqual(await review('token'), ann)
  deepEqual(await review('token'), ann)
  equal(state.asked, 2)
  state.nowMs += 5_001
  deepEqual(await review('token'), ann)
  equal(state.asked, 3)
  await rejects(review('another'), /connection refused/)
  state.nowMs += 3_600_000
  await rejects(review('token'), /connection refused/)
})

test('a token that has ended meanwhile is invalid as soon as the partition answers', async () => {
  const { state, review } = fixture()
  await review('token')
  state.answer = down
  await review('token')
  state.answer = async () => undefined
  state.nowMs += 5_001
  equal(await review('token'), undefined)
  state.answer = down
  await rejects(review('token'), /connection refused/)
})

test('a token is not accepted beyond its own end, nor after a rejection that is no outage', async () => {
  const { state, review } = fixture()
  const token = tokenUntil(1_060)
  await review(token)
  state.answer = down
  deepEqual(await review(token), ann)
  state.nowMs = 1_060_001
  await rejects(review(token), /connection refused/)
  state.answer = async () => ann
  state.nowMs += 5_001
  await review('another')
  state.nowMs += 5_001
  state.answer = async () => {
    throw new StatusError('Forbidden', 'tokenreviews is forbidden')
  }
  await rejects(review('another'), /tokenreviews is forbidden/)
})

test('a partition that has too many requests has not decided: a known token stays valid, another is rejected with the reason', async () => {
  const { state, review } = fixture()
  await review('token')
  state.answer = async () => {
    throw new StatusError('TooManyRequests', 'too many reviews wait')
  }
  deepEqual(await review('token'), ann)
  await rejects(review('another'), /too many reviews wait/)
})

test('a client that sends too many tokens keeps no token valid that has ended', async () => {
  const { state, review } = fixture()
  await review('token')
  state.answer = async () => {
    throw new LimitExceededError('too many requests of this client wait: retry later')
  }
  await rejects(review('token'), { name: 'StatusError', code: 429 })
  state.answer = async () => undefined
  equal(await review('token'), undefined)
})

test('a partition that is silent delays a known token for a moment only', async () => {
  const { state, review } = fixture({ patienceMs: 20 })
  await review('token')
  state.answer = () => new Promise(() => {})
  deepEqual(await review('token'), ann)
})
