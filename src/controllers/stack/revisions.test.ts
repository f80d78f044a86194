import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Stack, StackSource } from '../../api/index.ts'
import { Revisions } from './revisions.ts'

const git = { git: { url: 'https://example.com/a.git', branch: 'main' } }
const stackWith = (source: StackSource, uid = 'u'): Stack => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name: uid, namespace: 'ns', uid, resourceVersion: '1', creationTimestamp: '' },
  spec: { engine: 'terraform', source },
})

/** Lookups are answered by hand: `answer('r1')` for the oldest one that is under way. */
function rig(maxConcurrent = 8) {
  const open: { name: string; resolve(revision: string): void; reject(error: unknown): void }[] = []
  const told: string[] = []
  const clock = { nowMs: 0 }
  const revisions = new Revisions({
    resolve: stack => new Promise((resolve, reject) => void open.push({ name: stack.metadata.name, resolve, reject })),
    onAnswer: stack => told.push(stack.metadata.name),
    nowMs: () => clock.nowMs,
    maxConcurrent,
  })
  const turn = () => new Promise<void>(resolve => setImmediate(resolve))
  const settle = async (act: (lookup: (typeof open)[number]) => void) => {
    await turn()
    act(open.shift()!)
    await turn()
  }
  return {
    revisions,
    open,
    told,
    clock,
    turn,
    answer: (r: string) => settle(one => one.resolve(r)),
    fail: (e: unknown) => settle(one => one.reject(e)),
  }
}

test('the answer comes later, is told, and is looked up again at the interval', async () => {
  const { revisions, open, told, clock, answer } = rig()
  const stack = stackWith({ ...git, interval: '30s' })
  assert.deepEqual(revisions.get(stack, undefined), { revision: undefined })
  assert.deepEqual(revisions.get(stack, undefined), { revision: undefined })
  await answer('c1')
  assert.deepEqual(told, ['u'])
  clock.nowMs = 10_000
  assert.deepEqual(revisions.get(stack, undefined), { revision: 'c1', checkInMs: 20_000 })
  clock.nowMs = 30_000
  assert.deepEqual(revisions.get(stack, undefined), { revision: 'c1' })
  await answer('c2')
  assert.deepEqual(revisions.get(stack, undefined), { revision: 'c2', checkInMs: 30_000 })
  assert.equal(open.length, 0)
})

test('what cannot move is looked up once', async () => {
  for (const source of [{ inline: { files: { a: 'a' } } }, { git: { ...git.git, commit: 'a'.repeat(40) } }]) {
    const { revisions, clock, answer, open } = rig()
    const stack = stackWith(source)
    revisions.get(stack, undefined)
    await answer('r')
    clock.nowMs = 1e9
    assert.deepEqual(revisions.get(stack, undefined), { revision: 'r' })
    assert.equal(open.length, 0)
  }
})

test('another source is another question, and a late answer to the old one is not taken', async () => {
  const { revisions, answer } = rig()
  revisions.get(stackWith(git), undefined)
  const moved = stackWith({ git: { ...git.git, branch: 'next' } })
  assert.deepEqual(revisions.get(moved, undefined), { revision: undefined })
  await answer('old')
  assert.deepEqual(revisions.get(moved, undefined), { revision: undefined })
  await answer('new')
  assert.equal(revisions.get(moved, undefined).revision, 'new')
})

test('a request for a Run looks first, once', async () => {
  const { revisions, answer } = rig()
  revisions.get(stackWith(git), undefined)
  await answer('c1')
  assert.deepEqual(revisions.get(stackWith(git), 'apply:1'), { revision: undefined })
  await answer('c2')
  assert.equal(revisions.get(stackWith(git), 'apply:1').revision, 'c2')
})

test('errors are tried again: soon and slower where that may help, at the interval where it may not', async () => {
  const { revisions, clock, fail } = rig()
  const stack = stackWith(git)
  revisions.get(stack, undefined)
  await fail(new Error('could not resolve host'))
  const unavailable = { error: { reason: 'SourceUnavailable', message: 'could not resolve host', retryable: true } }
  assert.deepEqual(revisions.get(stack, undefined), { revision: unavailable, checkInMs: 5_000 })
  clock.nowMs = 5_000
  revisions.get(stack, undefined)
  await fail(new Error('could not resolve host'))
  assert.deepEqual(revisions.get(stack, undefined), { revision: unavailable, checkInMs: 10_000 })
  clock.nowMs = 15_000
  revisions.get(stack, undefined)
  await fail({ reason: 'SourceAuthFailed', message: 'bad password', retryable: false })
  assert.deepEqual(revisions.get(stack, undefined), {
    revision: { error: { reason: 'SourceAuthFailed', message: 'bad password', retryable: false } },
    checkInMs: 60_000,
  })
})

test('so many lookups at once and no more; inline files do not wait behind them', async () => {
  const { revisions, open, turn, answer } = rig(1)
  revisions.get(stackWith(git, 'a'), undefined)
  revisions.get(stackWith(git, 'b'), undefined)
  revisions.get(stackWith({ inline: { files: { x: 'x' } } }, 'c'), undefined)
  await turn()
  assert.deepEqual(
    open.map(({ name }) => name),
    ['a', 'c'],
  )
  await answer('r')
  assert.deepEqual(
    open.map(({ name }) => name),
    ['c', 'b'],
  )
})
