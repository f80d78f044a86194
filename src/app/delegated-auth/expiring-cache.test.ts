import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { ExpiringCache } from './expiring-cache.ts'

test('a value is loaded once until it expires, counted from the start of its request', async () => {
  let nowMs = 0
  let loads = 0
  const cache = new ExpiringCache<number>({ maxEntries: 10, nowMs: () => nowMs })
  const get = () =>
    cache.get(
      'a',
      async () => {
        nowMs += 400
        return ++loads
      },
      () => 1_000,
    )
  deepEqual(await Promise.all([get(), get()]), [1, 1], 'concurrent requests share one load')
  nowMs = 999
  equal(await get(), 1)
  nowMs = 1_000
  equal(await get(), 2)
})

test('a load that fails is not cached', async () => {
  const cache = new ExpiringCache<string>({ maxEntries: 10, nowMs: () => 0 })
  const load = async () => await Promise.reject(new Error('unreachable'))
  await rejects(
    cache.get('a', load, () => 1_000),
    /unreachable/,
  )
  equal(
    await cache.get(
      'a',
      async () => 'loaded',
      () => 1_000,
    ),
    'loaded',
  )
})

test('the oldest entry is dropped beyond the limit (invariant 10)', async () => {
  const cache = new ExpiringCache<string>({ maxEntries: 2, nowMs: () => 0 })
  const loaded: string[] = []
  const get = (key: string) =>
    cache.get(
      key,
      async () => {
        loaded.push(key)
        return key
      },
      () => 1_000,
    )
  for (const key of ['a', 'b', 'c', 'b', 'a']) await get(key)
  deepEqual(loaded, ['a', 'b', 'c', 'a'])
  equal(cache.size, 2)
})
