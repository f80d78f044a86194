import { deepEqual, equal, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { laterRevision, nextRevision } from '../../kubernetes/util/index.ts'
import { createClaimed } from './create-claimed.ts'

/** A partition that creates what comes in time by its clock, and a claim that is renewed with each attempt. */
function setUp(aheadMs: readonly number[]) {
  const nowMs = Date.UTC(2026, 10, 27)
  const limits: string[] = []
  const delays = [...aheadMs]
  const claim = async () => nextRevision(0, nowMs, 0)
  const send = async (headers: Readonly<Record<string, string>>) => {
    const notAfter = headers['x-oarlock-not-after'] ?? ''
    limits.push(notAfter)
    const isLate = laterRevision(nextRevision(0, nowMs, 3), delays.shift() ?? 0) > Number(notAfter)
    return { status: isLate ? 412 : 201, headers: {}, body: (async function* () {})() }
  }
  return { claim, send, limits, want: String(laterRevision(nextRevision(0, nowMs, 0), 30_000)) }
}

test('an object is created within 30 s of its claim', async () => {
  const { claim, send, limits, want } = setUp([29_000])
  equal((await createClaimed('t1', claim, send)).status, 201)
  deepEqual(limits, [want])
})

test('a creation that comes too late is tried once more with a renewed claim', async () => {
  const { claim, send, limits } = setUp([31_000, 100])
  equal((await createClaimed('t1', claim, send)).status, 201)
  equal(limits.length, 2)
})

test('a partition whose clock is ahead is named', async () => {
  const { claim, send } = setUp([45_000, 45_000])
  await rejects(
    createClaimed('t1', claim, send),
    /partition "t1" did not create it within 30 s of the claim of its name: its clock is ahead/,
  )
})
