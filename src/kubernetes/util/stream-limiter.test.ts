import { equal, match } from 'node:assert/strict'
import { test } from 'node:test'
import { StreamLimiter } from './stream-limiter.ts'

test('the streams of a user and of all users are limited, and end once', () => {
  const limiter = new StreamLimiter({ streams: 3, streamsPerUser: 2 })
  const end = limiter.open('ann') as () => void
  limiter.open('ann')
  match(String(limiter.open('ann')), /ann has 2 open logs and streams of pods/)
  limiter.open('bob')
  match(String(limiter.open('carol')), /the server has 3 open logs and streams of pods/)
  end()
  end()
  limiter.open('carol')
  equal(limiter.size, 3)
})
