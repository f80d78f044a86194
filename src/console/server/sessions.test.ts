import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { defaultSessionLimits, type NewSession, Sessions } from './sessions.ts'
import { TokenReviews } from './token-reviews.ts'

const signedIn = (name: string, token?: string): NewSession => ({
  user: { name, groups: [] },
  credential: token === undefined ? { kind: 'local' } : { kind: 'token', token },
  ...{ method: token === undefined ? 'link' : 'token', authenticatedMs: 0 },
})

test('a user who signs in again and again ends no session of another user', () => {
  const ended: string[] = []
  let nowMs = 0
  const limits = { ...defaultSessionLimits, maxSessions: 10, maxSessionsPerUser: 3 }
  const sessions = new Sessions(
    limits,
    ({ user }, reason) => ended.push(`${user.name}: ${reason}`),
    () => nowMs,
  )
  const ann = sessions.create(signedIn('ann'))
  for (let count = 0; count < 20; count++) {
    nowMs++
    sessions.create(signedIn('eve'))
  }
  equal(sessions.find(ann.secret), ann.session)
  deepEqual([...new Set(ended)], ['eve: too many sessions are open'])
  equal(ended.length, 17)
})

test('a session ends when its token is no longer valid, not when that is not known', async () => {
  const ended: string[] = []
  let nowMs = 0
  const sessions = new Sessions(defaultSessionLimits, ({ user }, reason) => ended.push(`${user.name}: ${reason}`))
  for (const token of ['valid', 'expired', 'other', 'unknown']) sessions.create(signedIn(token, token))
  sessions.create(signedIn('admin'))
  const asked: string[] = []
  const reviews = new TokenReviews(
    sessions,
    async token => {
      asked.push(token)
      if (token === 'unknown') throw new Error('the API server does not answer')
      return token === 'expired' ? undefined : { name: token === 'other' ? 'someone' : token, groups: [] }
    },
    () => nowMs,
  )
  const review = async () => {
    reviews.review()
    await setImmediate()
  }
  await review()
  deepEqual(ended, ['expired: the token is no longer valid', 'other: the token is no longer valid'])
  await review()
  deepEqual(asked, ['valid', 'expired', 'other', 'unknown', 'unknown'])
  nowMs = 30_000
  await review()
  deepEqual(asked.slice(5), ['valid', 'unknown'])
})
