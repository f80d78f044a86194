import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { WorkerPool } from '../../../api/index.ts'
import { initialStartState, type StartState, withFailed, withRegistered, withStarted, withStartFailing } from '../pool/index.ts'
import { poolReadiness, poolStatusOf } from './pool-status.ts'

const failure = { reason: 'ImagePullFailed', message: 'pod w: ErrImagePull' } as const
const starting = withStarted(initialStartState, 'w', 0)
const quota = { reason: 'QuotaExceeded', message: 'Pod shop/w: exceeded quota' } as const
const start = (state: StartState, domain: string, name = domain) => withStarted(state, name, 0, domain)
const fail = (state: StartState, domain: string) => withFailed(start(state, domain), domain, quota, 0)
const registered = (state: StartState, domain: string) => withRegistered(start(state, domain, 'r'), 'r', 0)
const shop = 'Pods do not start in namespace shop: QuotaExceeded: Pod shop/w: exceeded quota'

for (const { name, state, specError, expected } of [
  { name: 'a pool without starts is ready', state: undefined, specError: undefined, expected: ['True', 'Ready', 'workers can be started'] },
  {
    name: 'a pool with a healthy start is ready',
    state: starting,
    specError: undefined,
    expected: ['True', 'Ready', 'workers can be started'],
  },
  {
    name: 'a pool with an invalid schedule is not ready',
    state: undefined,
    specError: 'spec.schedule[0].timeZone is invalid',
    expected: ['False', 'InvalidSchedule', 'spec.schedule[0].timeZone is invalid'],
  },
  {
    name: 'a worker that is failing to start makes the pool not ready',
    state: withStartFailing(starting, 'w', failure),
    specError: undefined,
    expected: ['False', 'ImagePullFailed', 'pod w: ErrImagePull'],
  },
  {
    name: 'a failed start takes precedence over an invalid schedule',
    state: withFailed(starting, 'w', failure, 0),
    specError: 'spec.schedule[0].timeZone is invalid',
    expected: ['False', 'ImagePullFailed', 'pod w: ErrImagePull; failed starts in a row: 1'],
  },
  {
    name: 'Pods that fail in the only namespace make the pool not ready, with the namespace',
    state: fail(initialStartState, 'shop/'),
    specError: undefined,
    expected: ['False', 'QuotaExceeded', shop, 'shop: QuotaExceeded'],
  },
  {
    name: 'a Pod that is failing to start in a namespace makes the pool not ready, with the namespace',
    state: withStartFailing(start(initialStartState, 'shop/'), 'shop/', failure),
    specError: undefined,
    expected: [
      ...['False', 'ImagePullFailed', 'Pods do not start in namespace shop: ImagePullFailed: pod w: ErrImagePull'],
      'shop: ImagePullFailed',
    ],
  },
  {
    name: 'a pool whose Pods fail in one namespace only is ready, and names it',
    state: fail(registered(initialStartState, 'lab/'), 'shop/'),
    specError: undefined,
    expected: ['True', 'NamespaceFailing', `workers can be started in others; ${shop}`, 'shop: QuotaExceeded'],
  },
  {
    name: 'a pool whose Pods fail in the namespace that worked last is not ready',
    state: fail(registered(initialStartState, 'shop/'), 'shop/'),
    specError: undefined,
    expected: ['False', 'QuotaExceeded', shop, 'shop: QuotaExceeded'],
  },
  {
    name: 'a pool is ready again once a Pod of the namespace has registered',
    state: registered(fail(initialStartState, 'shop/'), 'shop/'),
    specError: undefined,
    expected: ['True', 'Ready', 'workers can be started'],
  },
  {
    name: 'of many namespaces the message names three',
    state: ['e', 'd', 'c', 'b', 'a'].reduce((state, namespace) => fail(state, `${namespace}/x`), fail(initialStartState, 'a/')),
    specError: undefined,
    expected: [
      'False',
      'QuotaExceeded',
      `Pods do not start in namespaces ${['a', 'b', 'c'].map(name => `${name}: QuotaExceeded: ${quota.message}`).join('; ')}; and 2 more`,
      'a: QuotaExceeded, and 4 more',
    ],
  },
]) {
  test(name, () => {
    const { status, reason, message, problem } = poolReadiness(state, specError)
    const ofPool = status === 'True' ? undefined : reason
    deepEqual([status, reason, message, problem], expected.length === 3 ? [...expected, ofPool] : expected)
  })
}

test('the status loses the problem when the pool has none any more', () => {
  const pool = { metadata: { name: 'p' }, spec: {} } as unknown as WorkerPool
  const counts = { queued: 0, busy: 0, starting: 0, workers: 0, desired: 0 }
  const statusOf = (of: WorkerPool, starts: StartState | undefined) =>
    poolStatusOf({ pool: of, counts, starts, specError: undefined, nowMs: 0 })
  const failing = statusOf(pool, fail(registered(initialStartState, 'lab/'), 'shop/'))
  deepEqual([failing.change, failing.status.problem], ['Urgent', 'shop: QuotaExceeded'])
  const now = { ...pool, status: failing.status }
  deepEqual(statusOf(now, fail(registered(initialStartState, 'lab/'), 'shop/')).change, 'None')
  const after = statusOf(now, undefined)
  deepEqual([after.change, 'problem' in after.status], ['Urgent', false])
})
