import { deepEqual, equal, match, ok, rejects, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { respondStatus } from '../../../test/support/scripted-server.ts'
import { configMapResource, createClient, secretResource } from '../client/index.ts'
import { describeResource } from '../object/index.ts'
import { VirtualTimers } from '../testing/index.ts'
import {
  type Controller,
  controller,
  Manager,
  type ManagerOptions,
  type ReconcileRequest,
  type Result,
  silentLog,
  TerminalError,
  watching,
} from './index.ts'

const fast = { backoff: { minMs: 5, maxMs: 20 } }
const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`
const secretPath = (name: string) => `/api/v1/namespaces/a/secrets/${name}`

async function withManager(
  run: (context: { api: InMemoryApi; manager: Manager; client: Awaited<ReturnType<typeof createClient>> }) => Promise<void>,
  options: Partial<ManagerOptions> = {},
) {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url, namespace: 'a' } })
  const manager = new Manager({ client, log: silentLog, listWatch: fast, ...options })
  try {
    await run({ api, manager, client })
  } finally {
    await manager.stop({ graceMs: 100 })
    await client.close()
    await api.close()
  }
}

function recorder(reconcile: (request: ReconcileRequest) => Promise<Result> | Result = () => undefined, extra: object = {}) {
  const calls: string[] = []
  const made: Controller = controller({
    name: 'maps',
    for: configMapResource,
    backoff: { baseDelayMs: 1, maxDelayMs: 4 },
    ...extra,
    reconcile: async request => {
      calls.push(request.key)
      return await reconcile(request)
    },
  })
  return { calls, controller: made }
}

test('existing and changed objects, their owners and mapped objects are reconciled, over one watch per kind', async () => {
  await withManager(async ({ api, manager }) => {
    api.put(path('x'))
    const { calls, controller: maps } = recorder(undefined, {
      owns: [secretResource],
      watches: [watching(secretResource, secret => (secret.type === 'shared' ? ['a/mapped'] : []))],
    })
    manager.add(maps)
    manager.add(recorder(undefined, { name: 'others' }).controller)
    await manager.start()
    await eventually(() => calls.length === 1, 'the first object')
    api.put(path('y'))
    api.put(secretPath('s'), {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u', controller: true }] },
    })
    api.put(secretPath('t'), { type: 'shared' })
    await eventually(() => calls.length === 4, 'y, the owner of s, and what t maps to')
    deepEqual(calls.sort(), ['a/mapped', 'a/x', 'a/x', 'a/y'])
    equal(api.server.requests.filter(({ query }) => query.has('watch')).length, 2, 'configmaps and secrets')
  })
})

test('an error is retried with backoff, a terminal error waits for a change, requeueAfterMs requeues', async () => {
  const attempts: number[] = []
  const again: string[] = []
  await withManager(async ({ api, manager }) => {
    const { calls, controller: maps } = recorder(({ name, attempt }) => {
      if (name === 'flaky' && attempts.push(attempt) < 4) throw 'not even an error'
      if (name === 'hopeless') throw new TerminalError('needs a person')
      if (name === 'nonsense' && again.push(name) < 3) return { requeueAfterMs: -1 }
      if (name === 'later' && again.push(name) < 6) return { requeueAfterMs: 1 }
    })
    manager.add(maps)
    await manager.start()
    api.put(path('flaky'))
    await eventually(() => attempts.length === 4, 'three failures and a success')
    deepEqual(attempts, [0, 1, 2, 3])
    api.put(path('hopeless'))
    await eventually(() => calls.includes('a/hopeless'), 'the hopeless one')
    api.put(path('nonsense'))
    await eventually(() => again.length === 3, 'nonsense counts as a failure')
    api.put(path('later'))
    await eventually(() => again.length === 6, 'delayed adds')
    equal(calls.filter(key => key === 'a/hopeless').length, 1)
    api.put(path('hopeless'))
    await eventually(() => calls.filter(key => key === 'a/hopeless').length === 2, 'after a change it is tried again')
  })
})

test('invariant 7: changes during a reconcile of the key wait for it', async () => {
  let running = 0
  let most = 0
  const gate = Promise.withResolvers<void>()
  await withManager(async ({ api, manager }) => {
    const { calls, controller: maps } = recorder(async () => {
      most = Math.max(most, ++running)
      await gate.promise
      running--
    })
    manager.add(maps)
    await manager.start()
    for (let change = 0; change < 5; change++) {
      api.put(path('x'), { data: { change: String(change) } })
      await eventually(() => manager.informer(configMapResource).get('a/x')?.data?.change === String(change), 'the cache sees it')
    }
    deepEqual(calls, ['a/x'])
    gate.resolve()
    await eventually(() => calls.length === 2, 'one more run for all five')
    equal(most, 1)
  })
})

test('stop waits for a reconcile and aborts the signal of one that does not finish', async () => {
  const ended: string[] = []
  const stopCalled = Promise.withResolvers<void>()
  await withManager(async ({ api, manager }) => {
    const { calls, controller: maps } = recorder(async ({ name, signal }) => {
      if (name === 'short') await stopCalled.promise
      else await new Promise(resolve => signal.addEventListener('abort', resolve))
      ended.push(`${name} ${signal.aborted}`)
    })
    manager.add(maps)
    await manager.start()
    api.put(path('short'))
    api.put(path('endless'))
    await eventually(() => calls.length === 2, 'both run')
    const stopped = manager.stop({ graceMs: 100 })
    stopCalled.resolve()
    await stopped
    deepEqual(ended, ['short false', 'endless true'])
    deepEqual(manager.readyz(), { ok: false, reasons: ['the manager is stopped'], publicReasons: ['the manager is stopped'] })
  })
})

test('a kind that cannot be listed delays only its own controller, readyz reports why, and it starts when the kind appears', async () => {
  await withManager(async ({ api, manager }) => {
    let hasSecrets = false
    api.intercept = ({ path }, response) => {
      if (hasSecrets || !path.endsWith('/secrets')) return false
      respondStatus(response, 404, 'NotFound')
      return true
    }
    api.put(path('x'))
    const { calls, controller: maps } = recorder()
    const late = recorder(undefined, { name: 'late', for: secretResource })
    manager.add(late.controller)
    manager.add(maps)
    const started = manager.start()
    await eventually(() => calls.length === 1, 'the healthy controller works')
    await eventually(
      () => manager.readyz().reasons.some(reason => reason.includes('the server has no secrets of v1: does the server serve v1?')),
      'readyz names the cause',
    )
    match(manager.readyz().reasons.join(), /the cache of secrets is not filled yet/)
    api.put(secretPath('s'))
    hasSecrets = true
    await started
    await eventually(() => late.calls.length === 1, 'the late one')
    deepEqual(manager.readyz(), { ok: true, reasons: [], publicReasons: [] })
  })
})

test('a runnable that fails makes the manager unhealthy and does not affect the others', async () => {
  await withManager(async ({ api, manager }) => {
    const { calls, controller: maps } = recorder()
    manager.add({ name: 'ticker', start: async () => Promise.reject(new Error('no clock')) })
    manager.add(maps)
    await manager.start()
    await eventually(() => !manager.healthz().ok, 'healthz')
    deepEqual(manager.healthz().reasons, ['ticker failed: no clock'])
    api.put(path('x'))
    await eventually(() => calls.length === 1, 'still reconciling')
  })
})

test('names are unique, a manager starts once, and options are validated', async () => {
  await withManager(async ({ manager }) => {
    manager.add(recorder().controller)
    throws(() => manager.add(recorder().controller), /a controller named "maps" was already added/)
    throws(() => recorder(undefined, { maxConcurrent: 0 }), /maxConcurrent of controller maps must be an integer > 0, got 0/)
    manager.informer(secretResource, { transform: object => object })
    throws(() => manager.informer(secretResource, { transform: object => object }), /another transform/)
    await manager.start()
    await rejects(manager.start(), /it can be started only once/)
  })
})

test('two managers with leader election: one works, the other takes over after a graceful stop', async () => {
  await withManager(
    async ({ api, manager, client }) => {
      const first = recorder()
      const second = recorder()
      const election = { leaseName: 'ctl', namespace: 'a', leaseDurationMs: 1_000, renewDeadlineMs: 600, retryPeriodMs: 20 }
      const other = new Manager({ client, log: silentLog, listWatch: fast, leaderElection: { ...election, identity: 'two' } })
      manager.add(first.controller)
      other.add(second.controller)
      await manager.start()
      await manager.whenLeader
      await other.start()
      api.put(path('x'))
      await eventually(() => first.calls.length === 1, 'the leader works')
      equal(manager.isLeader, true)
      equal(other.isLeader, false)
      await manager.stop()
      await other.whenLeader
      await eventually(() => second.calls.length === 1, 'the other starts with what is there')
      equal(first.calls.length, 1)
      await other.stop()
    },
    {
      leaderElection: {
        leaseName: 'ctl',
        namespace: 'a',
        identity: 'one',
        leaseDurationMs: 1_000,
        renewDeadlineMs: 600,
        retryPeriodMs: 20,
      },
    },
  )
})

test('invariant 7: when the Lease cannot be renewed, running reconciles are aborted, and work resumes after it is acquired again', async () => {
  const election = { leaseName: 'ctl', namespace: 'a', identity: 'one', leaseDurationMs: 300, renewDeadlineMs: 200, retryPeriodMs: 20 }
  await withManager(
    async ({ api, manager }) => {
      const aborted: string[] = []
      const leading: boolean[] = []
      const { calls, controller: maps } = recorder(async request => {
        const { signal } = request
        if (calls.length > 1) return
        leading.push(request.isLeading())
        await new Promise(resolve => signal.addEventListener('abort', resolve))
        aborted.push(String(signal.reason))
        leading.push(request.isLeading())
      })
      manager.add(maps)
      await manager.start()
      api.put(path('x'))
      await eventually(() => calls.length === 1, 'the first reconcile')
      api.intercept = ({ path }, response) => {
        if (!path.includes('/leases')) return false
        respondStatus(response, 500, 'InternalError')
        return true
      }
      await eventually(() => aborted.length === 1, 'the abort')
      deepEqual([aborted, manager.isLeader, manager.healthz().ok], [['NotLeaderError: leadership was lost'], false, true])
      deepEqual(leading, [true, false])
      api.intercept = undefined
      await eventually(() => calls.length === 2 && manager.isLeader, 'the work to continue')
    },
    { leaderElection: election, log: pino({ level: 'silent' }) },
  )
})

test('a process is not healthy while work of a lost leadership ignores its signal, and leads again when it has ended', async () => {
  const election = { leaseName: 'ctl', namespace: 'a', identity: 'one', leaseDurationMs: 300, renewDeadlineMs: 200, retryPeriodMs: 20 }
  const timers = new VirtualTimers()
  await withManager(
    async ({ api, manager }) => {
      const ended = Promise.withResolvers<void>()
      let starts = 0
      manager.add({
        start: async signal => {
          starts++
          await new Promise(resolve => signal.addEventListener('abort', resolve))
          await ended.promise
        },
      })
      await manager.start()
      await eventually(() => starts === 1, 'the first leadership')
      api.intercept = ({ path }, response) => {
        if (!path.includes('/leases')) return false
        respondStatus(response, 500, 'InternalError')
        return true
      }
      await eventually(() => !manager.isLeader, 'the loss')
      api.intercept = undefined
      await eventually(() => timers.pending > 0, 'the timer')
      await timers.advance(29_999)
      equal(manager.healthz().ok, true)
      await timers.advance(1)
      deepEqual(manager.healthz().reasons, ['the end of a lost leadership failed: 1 tasks still run although their signal aborted'])
      equal(starts, 1)
      ended.resolve()
      await eventually(() => starts === 2 && manager.isLeader, 'the next leadership')
      equal(manager.healthz().ok, true)
    },
    { leaderElection: election, log: pino({ level: 'silent' }), timers },
  )
})

test('metrics have the names of controller-runtime', async () => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  await withManager(
    async ({ api, manager }) => {
      const { calls, controller: maps } = recorder(({ name, attempt }) => {
        if (name === 'bad' && attempt === 0) throw new Error('once')
      })
      manager.add(maps)
      await manager.start()
      api.put(path('bad'))
      await eventually(() => calls.length === 2, 'failure and success')
      const text = await registry.metrics()
      for (const line of [
        'controller_runtime_reconcile_total{controller="maps",result="error"} 1',
        'controller_runtime_reconcile_total{controller="maps",result="success"} 1',
        'controller_runtime_reconcile_errors_total{controller="maps"} 1',
        'controller_runtime_reconcile_time_seconds_count{controller="maps"} 2',
        'workqueue_depth{name="maps",controller="maps",priority="0"} 0',
        'workqueue_adds_total{name="maps",controller="maps"} 2',
        'workqueue_retries_total{name="maps",controller="maps"} 1',
        'workqueue_queue_duration_seconds_count{name="maps",controller="maps"} 2',
        'workqueue_work_duration_seconds_count{name="maps",controller="maps"} 2',
      ]) {
        ok(text.includes(line), `${line} in\n${text}`)
      }
      match(text, /rest_client_requests_total\{method="GET",code="200",host="127\.0\.0\.1:\d+"\} \d/)
    },
    { registry },
  )
})

test('a type error in a controller for an untyped kind is a single error', async () => {
  const untyped = describeResource<{ spec: { a: string } }>({
    group: 'x.dev',
    version: 'v1',
    kind: 'Stack',
    plural: 'stacks',
    scope: 'Namespaced',
  })
  await withManager(async ({ api, manager }) => {
    const { calls, controller: made } = recorder(undefined, { for: untyped })
    manager.add(made)
    await manager.start()
    api.put('/apis/x.dev/v1/namespaces/a/stacks/s', { spec: { a: '1' } })
    await eventually(() => calls[0] === 'a/s', 'the untyped kind')
    equal(manager.informer(untyped).get('a/s')?.spec.a, '1')
  })
})
