import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack, StackSource } from '../../api/index.ts'
import { RevisionCache } from './revision-cache.ts'

const git = { git: { url: 'https://example.com/a.git', branch: 'main' } }
const stackWith = (source: StackSource, uid = 'u'): Stack => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name: uid, namespace: 'ns', uid, resourceVersion: '1', creationTimestamp: '' },
  spec: { engine: 'terraform', source },
})

/** A cache whose lookups the test completes: `resolveOldest('r1')` completes the oldest one in progress. */
function harness(maxConcurrent = 8) {
  const pending: { name: string; resolve(revision: string): void; reject(error: unknown): void }[] = []
  const resolved: string[] = []
  const clock = { nowMs: 0 }
  const cache = new RevisionCache({
    resolve: stack => new Promise((resolve, reject) => void pending.push({ name: stack.metadata.name, resolve, reject })),
    onResolved: stack => resolved.push(stack.metadata.name),
    nowMs: () => clock.nowMs,
    maxConcurrent,
  })
  const nextTick = () => new Promise<void>(resolve => setImmediate(resolve))
  const settle = async (act: (lookup: (typeof pending)[number]) => void) => {
    await nextTick()
    act(pending.shift()!)
    await nextTick()
  }
  return {
    cache,
    pending,
    resolved,
    clock,
    nextTick,
    resolveOldest: (revision: string) => settle(lookup => lookup.resolve(revision)),
    rejectOldest: (error: unknown) => settle(lookup => lookup.reject(error)),
  }
}

test('reports a resolved revision and resolves it again at the interval', async () => {
  const { cache, pending, resolved, clock, resolveOldest } = harness()
  const stack = stackWith({ ...git, interval: '30s' })
  assert.deepEqual(cache.get(stack, undefined), { revision: undefined })
  assert.deepEqual(cache.get(stack, undefined), { revision: undefined })
  await resolveOldest('c1')
  assert.deepEqual(resolved, ['u'])
  clock.nowMs = 10_000
  assert.deepEqual(cache.get(stack, undefined), { revision: 'c1', recheckAfterMs: 20_000 })
  clock.nowMs = 30_000
  assert.deepEqual(cache.get(stack, undefined), { revision: 'c1' })
  await resolveOldest('c2')
  assert.deepEqual(cache.get(stack, undefined), { revision: 'c2', recheckAfterMs: 30_000 })
  assert.equal(pending.length, 0)
})

test('resolves an immutable source once', async () => {
  for (const source of [{ inline: { files: { a: 'a' } } }, { git: { ...git.git, commit: 'a'.repeat(40) } }]) {
    const { cache, clock, resolveOldest, pending } = harness()
    const stack = stackWith(source)
    cache.get(stack, undefined)
    await resolveOldest('r')
    clock.nowMs = 1e9
    assert.deepEqual(cache.get(stack, undefined), { revision: 'r' })
    assert.equal(pending.length, 0)
  }
})

test('ignores the late result of a lookup for a previous source', async () => {
  const { cache, resolveOldest } = harness()
  cache.get(stackWith(git), undefined)
  const moved = stackWith({ git: { ...git.git, branch: 'next' } })
  assert.deepEqual(cache.get(moved, undefined), { revision: undefined })
  await resolveOldest('old')
  assert.deepEqual(cache.get(moved, undefined), { revision: undefined })
  await resolveOldest('new')
  assert.equal(cache.get(moved, undefined).revision, 'new')
})

test('resolves the source once for a new request for a Run', async () => {
  const { cache, resolveOldest } = harness()
  cache.get(stackWith(git), undefined)
  await resolveOldest('c1')
  assert.deepEqual(cache.get(stackWith(git), 'apply:1'), { revision: undefined })
  await resolveOldest('c2')
  assert.equal(cache.get(stackWith(git), 'apply:1').revision, 'c2')
})

test('resolves the source once when it is to destroy the Stack', async () => {
  const { cache, pending, resolveOldest, rejectOldest } = harness()
  const stack = stackWith({ ...git, interval: '1h' })
  cache.get(stack, undefined)
  await rejectOldest({ reason: 'SourceNotFound', message: 'the repository does not exist', retryable: false })
  const destroyed = { ...stack, metadata: { ...stack.metadata, annotations: { 'oarlock.dev/destroy-source': 'Current' } } }
  assert.deepEqual(cache.get(destroyed, undefined), { revision: undefined })
  await resolveOldest('c2')
  assert.equal(cache.get(destroyed, undefined).revision, 'c2')
  assert.equal(pending.length, 0)
})

test('resolves the source again if a Run is requested during a lookup', async () => {
  for (const finish of ['resolve', 'reject'] as const) {
    const { cache, resolved, pending, resolveOldest, rejectOldest } = harness()
    cache.get(stackWith(git), undefined)
    assert.deepEqual(cache.get(stackWith(git), 'apply:1'), { revision: undefined })
    if (finish === 'resolve') await resolveOldest('before the push')
    else await rejectOldest(new Error('could not resolve host'))
    assert.deepEqual(cache.get(stackWith(git), 'apply:1'), { revision: undefined })
    assert.deepEqual(resolved, [])
    await resolveOldest('c2')
    assert.equal(cache.get(stackWith(git), 'apply:1').revision, 'c2')
    assert.deepEqual(resolved, ['u'])
    assert.equal(pending.length, 0)
  }
})

test('retries a retryable error with backoff and another error at the interval', async () => {
  const { cache, clock, rejectOldest } = harness()
  const stack = stackWith(git)
  cache.get(stack, undefined)
  await rejectOldest(new Error('could not resolve host'))
  const unavailable = (nextMs: number) => ({
    error: { reason: 'SourceUnavailable', message: 'could not resolve host', retryable: true, nextMs },
  })
  assert.deepEqual(cache.get(stack, undefined), { revision: unavailable(5_000), recheckAfterMs: 5_000 })
  clock.nowMs = 5_000
  cache.get(stack, undefined)
  await rejectOldest(new Error('could not resolve host'))
  assert.deepEqual(cache.get(stack, undefined), { revision: unavailable(15_000), recheckAfterMs: 10_000 })
  clock.nowMs = 15_000
  cache.get(stack, undefined)
  await rejectOldest({ reason: 'SourceAuthFailed', message: 'bad password', retryable: false })
  assert.deepEqual(cache.get(stack, undefined), {
    revision: { error: { reason: 'SourceAuthFailed', message: 'bad password', retryable: false } },
    recheckAfterMs: 60_000,
  })
})

test('Stacks of one git ref share their lookups, whatever their directories and intervals are', async () => {
  const { cache, clock, pending, resolved, nextTick, resolveOldest } = harness()
  const a = stackWith({ ...git, interval: '30s' }, 'a')
  const b = stackWith({ git: { ...git.git, directory: 'b' }, interval: '50s' }, 'b')
  const others = [
    { ...stackWith(git, 'other-namespace'), metadata: { ...a.metadata, uid: 'x', namespace: 'other' } },
    stackWith({ git: { ...git.git, secretRef: { name: 's' } } }, 'other-credentials'),
    stackWith({ git: { ...git.git, branch: 'next' } }, 'other-branch'),
  ]
  for (const stack of [a, b, ...others]) cache.get(stack, undefined)
  await nextTick()
  assert.equal(pending.length, 4)
  await resolveOldest('c1')
  assert.deepEqual(resolved, ['a', 'b'])
  clock.nowMs = 30_000
  cache.get(a, undefined)
  await nextTick()
  assert.equal(pending.length, 4)
  for (let rest = 0; rest < 3; rest++) await resolveOldest('of others')
  resolved.length = 0
  await resolveOldest('c2')
  assert.deepEqual(resolved, ['a', 'b'].reverse())
  clock.nowMs = 50_000
  assert.deepEqual(cache.get(b, undefined), { revision: 'c2', recheckAfterMs: 30_000 })
  // An unchanged revision of another Stack causes no reconcile.
  clock.nowMs = 60_000
  cache.get(a, undefined)
  resolved.length = 0
  await resolveOldest('c2')
  assert.deepEqual(resolved, ['a'])
  assert.deepEqual(cache.get(b, undefined), { revision: 'c2', recheckAfterMs: 50_000 })
})

test('what is due joins a lookup in progress; a request does not, and its result is not replaced by an older one', async () => {
  const { cache, clock, pending, nextTick, resolveOldest } = harness()
  const [a, b, c] = ['a', 'b', 'c'].map(uid => stackWith({ ...git, interval: '30s' }, uid)) as [Stack, Stack, Stack]
  for (const stack of [a, b, c]) cache.get(stack, undefined)
  await resolveOldest('c1')
  clock.nowMs = 30_000
  for (const stack of [a, b]) cache.get(stack, undefined)
  await nextTick()
  cache.get(c, 'apply:1')
  await nextTick()
  assert.equal(pending.length, 2, 'one of a and b, one of the request')
  pending.reverse()
  await resolveOldest('pushed just now')
  await resolveOldest('c1')
  assert.equal(cache.get(c, 'apply:1').revision, 'pushed just now')
  assert.equal(cache.get(a, undefined).revision, 'c1')
  assert.equal(cache.get(b, undefined).revision, 'c1')
  assert.equal(pending.length, 0)
})

test('a deleted Stack gets no revision of the others', async () => {
  const { cache, resolved, resolveOldest } = harness()
  for (const uid of ['a', 'b']) cache.get(stackWith(git, uid), undefined)
  await resolveOldest('c1')
  cache.delete('b')
  resolved.length = 0
  cache.get(stackWith(git, 'a'), 'apply:1')
  await resolveOldest('c2')
  assert.deepEqual(resolved, ['a'])
})

test('limits concurrent lookups, and inline sources do not queue behind them', async () => {
  const { cache, pending, nextTick, resolveOldest } = harness(1)
  cache.get(stackWith(git, 'a'), undefined)
  cache.get(stackWith({ git: { ...git.git, branch: 'b' } }, 'b'), undefined)
  cache.get(stackWith({ inline: { files: { x: 'x' } } }, 'c'), undefined)
  await nextTick()
  assert.deepEqual(
    pending.map(({ name }) => name),
    ['c', 'a'],
  )
  for (const rest of [['a'], ['b']]) {
    await resolveOldest('r')
    assert.deepEqual(
      pending.map(({ name }) => name),
      rest,
    )
  }
})

test('reports the attempts of an error that persists, until a lookup succeeds', async () => {
  const { cache, clock, resolveOldest, rejectOldest } = harness()
  const stack = stackWith(git)
  const fail = async () => {
    cache.get(stack, undefined)
    await rejectOldest(new Error('could not resolve host'))
    const { revision, recheckAfterMs = 0 } = cache.get(stack, undefined)
    const { attempts, nextMs } = typeof revision === 'object' ? revision.error : {}
    const failedAtMs = clock.nowMs
    clock.nowMs += recheckAfterMs
    assert.equal(nextMs, clock.nowMs)
    return { attempts, failedAtMs }
  }
  const first = await fail()
  for (let attempt = 2; attempt < 10; attempt++) assert.equal((await fail()).attempts, undefined, `attempt ${attempt}`)
  const tenth = await fail()
  assert.deepEqual(tenth.attempts, { count: 10, sinceMs: first.failedAtMs, lastMs: tenth.failedAtMs })
  assert.equal((await fail()).attempts?.count, 11)

  cache.get(stack, undefined)
  await resolveOldest('c1')
  clock.nowMs += 10 * 60_000
  assert.equal((await fail()).attempts, undefined)
})
