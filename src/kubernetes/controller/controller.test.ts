import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import Type from 'typebox'
import { eventually } from '../../../test/support/eventually.ts'
import { InMemoryApi } from '../../../test/support/in-memory-api.ts'
import { VirtualClock } from '../../../test/support/virtual-clock.ts'
import { configMapResource, createClient, secretResource } from '../client/index.ts'
import { conflict, defineResource } from '../object/index.ts'
import {
  type Controller,
  type ControllerOptions,
  controller,
  lowPriority,
  Manager,
  type ManagerOptions,
  predicates,
  type ReconcileRequest,
  type Span,
  TerminalError,
} from './index.ts'

const fast = { backoff: { minMs: 5, maxMs: 20 } }
const path = (name: string) => `/api/v1/namespaces/a/configmaps/${name}`

type Context = { api: InMemoryApi; manager: Manager; lines: Record<string, unknown>[] }

async function withManager(run: (context: Context) => Promise<void>, options: Partial<ManagerOptions> = {}) {
  const api = await InMemoryApi.start()
  const client = await createClient({ cluster: { server: api.server.url, namespace: 'a' } })
  const lines: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const manager = new Manager({ client, listWatch: fast, log, ...options })
  try {
    await run({ api, manager, lines })
  } finally {
    await manager.stop({ graceMs: 100 })
    await client.close()
    await api.close()
  }
}

const maps = (options: Partial<ControllerOptions<object>> & Pick<ControllerOptions<object>, 'reconcile'>): Controller =>
  controller({ name: 'maps', for: configMapResource, backoff: { baseDelayMs: 1, maxDelayMs: 4 }, ...options })

test('resync enqueues every object after resyncMs with 10 % jitter, behind changes, regardless of predicates', async () => {
  const time = new VirtualClock()
  const calls: string[] = []
  await withManager(
    async ({ api, manager }) => {
      for (const name of ['x', 'y']) api.put(path(name))
      manager.add(
        maps({
          resyncMs: 1_000,
          predicates: [predicates.not(() => true)],
          reconcile: async ({ key }) => void calls.push(key),
        }),
      )
      await manager.start()
      await time.advance(1_049)
      deepEqual(calls, [], 'the predicate lets nothing through')
      await time.advance(1)
      await eventually(() => calls.length === 2, 'the first resync, at 1,000 × (0.9 + 0.75 × 0.2)')
      await time.advance(1_050)
      await eventually(() => calls.length === 4, 'the second')
      deepEqual(calls.sort(), ['a/x', 'a/x', 'a/y', 'a/y'])
    },
    { timers: time, random: () => 0.75 },
  )
  equal(lowPriority < 0, true)
})

test('objects of the initial list that are reconciled again and again do not starve those that wait behind them', async () => {
  const names = ['x', 'y', 'z']
  const calls = new Map<string, number>()
  await withManager(async ({ api, manager }) => {
    for (const name of names) api.put(path(name))
    manager.add(
      maps({
        maxConcurrent: 1,
        reconcile: async ({ name }) => {
          calls.set(name, (calls.get(name) ?? 0) + 1)
          await new Promise(resolve => setTimeout(resolve, 1))
          return { requeueAfterMs: 0 }
        },
      }),
    )
    await manager.start()
    await eventually(() => names.every(name => (calls.get(name) ?? 0) > 1), 'all objects, twice')
  })
})

test('a retry and a requeue keep the priority of the key, and a requeue with a priority gets that one', async () => {
  const time = new VirtualClock()
  const calls: string[] = []
  const gate = Promise.withResolvers<void>()
  await withManager(
    async ({ api, manager }) => {
      for (const name of ['failing', 'polling', 'urgent']) api.put(path(name))
      const made = maps({
        maxConcurrent: 1,
        backoff: { baseDelayMs: 100 },
        reconcile: async ({ name }) => {
          calls.push(name)
          if (name === 'slow') await gate.promise
          if (calls.filter(call => call === name).length > 1) return
          if (name === 'failing') throw new Error('not yet')
          if (name === 'polling') return { requeueAfterMs: 100 }
          if (name === 'urgent') return { requeueAfterMs: 100, priority: 1 }
        },
      })
      manager.add(made)
      await manager.start()
      await eventually(() => made.depth.delayed === 3, 'the first attempts')
      api.put(path('slow'))
      await eventually(() => calls.length === 4, 'the worker is busy')
      await time.advance(100)
      api.put(path('changed'))
      await eventually(() => made.depth.waiting === 4, 'four wait')
      gate.resolve()
      await eventually(() => calls.length === 8, 'all of them')
      deepEqual(calls.slice(3), ['slow', 'urgent', 'changed', 'failing', 'polling'])
    },
    { timers: time },
  )
})

test('a reconcile that never returns keeps its key but not its worker: other keys proceed, and health fails when none can', async () => {
  const time = new VirtualClock()
  const calls: string[] = []
  const release = Promise.withResolvers<void>()
  await withManager(
    async ({ api, manager, lines }) => {
      const made = maps({
        maxConcurrent: 1,
        timeoutMs: 1_000,
        reconcile: async ({ name, key }) => {
          calls.push(key)
          // Like a call that does not pass the signal on.
          if (name.startsWith('stuck')) await release.promise
        },
      })
      manager.add(made)
      await manager.start()
      api.put(path('stuck'))
      await eventually(() => calls.length === 1, 'it begins')
      api.put(path('fine'))
      await eventually(() => made.depth.waiting === 1, 'the other waits')
      await time.advance(1_000)
      equal(manager.healthz().ok, true)
      await time.advance(10_000)
      await eventually(() => calls.includes('a/fine'), 'the other object to be reconciled')
      match(manager.healthz().reasons.join(), /1 reconciles of maps are still running although their signal aborted/)
      equal(made.depth.running, 1)
      ok(lines.some(({ msg, key }) => String(msg).includes('ignores its abort signal') && key === 'a/stuck'))
      release.resolve()
      await eventually(() => made.depth.running === 0, 'it ended after all')
      equal(manager.healthz().ok, true)
      api.put(path('again'))
      await eventually(() => calls.includes('a/again'), 'one worker is left and works')
    },
    { timers: time },
  )
})

test('each attempt has a reconcile id, the same in its log lines and its span, which records the failure', async () => {
  const spans: { name: string; attributes: Record<string, unknown>; errors: string[]; isEnded: boolean }[] = []
  const tracer = {
    startActiveSpan<T>(name: string, { attributes }: { attributes: Record<string, unknown> }, run: (span: Span) => T): T {
      const span = { name, attributes, errors: [] as string[], isEnded: false }
      spans.push(span)
      return run({
        setAttribute: () => undefined,
        recordException: error => void span.errors.push(error.message),
        setStatus: ({ code }) => void span.errors.push(`status ${code}`),
        end: () => {
          span.isEnded = true
        },
      })
    },
  }
  const ids: string[] = []
  await withManager(
    async ({ api, manager, lines }) => {
      manager.add(
        maps({
          reconcile: async ({ reconcileId, attempt, log }) => {
            ids.push(reconcileId)
            log.info({}, 'at work')
            if (attempt === 0) throw new Error('once')
          },
        }),
      )
      await manager.start()
      api.put(path('x'))
      await eventually(() => ids.length === 2 && spans.every(({ isEnded }) => isEnded), 'two attempts')
      equal(new Set(ids).size, 2)
      deepEqual(
        spans.map(({ name, attributes, errors }) => ({ name, ...attributes, errors })),
        [0, 1].map(attempt => ({
          name: 'reconcile maps',
          controller: 'maps',
          key: 'a/x',
          'reconcile.id': ids[attempt],
          'reconcile.attempt': attempt,
          errors: attempt === 0 ? ['once', 'status 2'] : [],
        })),
      )
      const atWork = lines.filter(({ msg }) => msg === 'at work').map(({ reconcileId, key, controller }) => [reconcileId, key, controller])
      deepEqual(
        atWork,
        ids.map(id => [id, 'a/x', 'maps']),
      )
      equal(lines.find(({ msg }) => msg === 'reconcile failed')?.reconcileId, ids[0])
    },
    { tracer },
  )
})

const boats = defineResource({
  group: 'x.dev',
  version: 'v1',
  kind: 'Boat',
  // One of the few collections that TinyApi lists.
  plural: 'stacks',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Integer() }),
  status: Type.Object({}),
})
const boatPath = (name: string) => `/apis/x.dev/v1/namespaces/a/stacks/${name}`

test('an object that violates its schema: the failure it causes names the field, and validate rejects it before the reconcile', async () => {
  for (const validate of [false, true]) {
    await withManager(async ({ api, manager, lines }) => {
      const seen: string[] = []
      const informer = manager.informer(boats)
      manager.add(
        controller({
          name: 'boats',
          for: boats,
          validate,
          backoff: { baseDelayMs: 1, maxDelayMs: 4 },
          reconcile: async ({ key, name, attempt }) => {
            seen.push(name)
            if (attempt === 0) informer.get(key)?.spec.seats.toFixed()
          },
        }),
      )
      await manager.start()
      api.put(boatPath('bad'), { spec: { seats: 'many' } })
      api.put(boatPath('good'), { spec: { seats: 2 } })
      const failed = () => lines.find(({ msg }) => String(msg).startsWith('reconcile failed'))
      await eventually(() => failed() !== undefined && seen.includes('good'), 'the failure and the other')
      const { msg, schemaViolation, isTerminal, err } = failed() as {
        msg: string
        schemaViolation: string
        isTerminal: boolean
        err: { message: string }
      }
      match(msg, /violates the schema of its kind: correct the object/)
      match(schemaViolation, /spec\.seats/)
      equal(isTerminal, validate)
      if (!validate) return
      match(err.message, /Boat a\/bad violates the schema.*spec\.seats/)
      equal(seen.includes('bad'), false)
      api.put(boatPath('bad'), { spec: { seats: 3 } })
      await eventually(() => seen.includes('bad'), 'it is corrected')
    })
  }
})

test('one reconcile for several clusters keeps keys apart, and readyz names the cluster that is missing', async () => {
  const east = await InMemoryApi.start()
  const west = await InMemoryApi.start()
  const clients = await Promise.all([east, west].map(api => createClient({ cluster: { server: api.server.url } })))
  const clusters = { east: clients[0] as (typeof clients)[0], west: clients[1] as (typeof clients)[0] }
  const seen: string[] = []
  await withManager(
    async ({ api, manager }) => {
      const reported = ({ cluster, key, object, client }: ReconcileRequest) => {
        seen.push(`${cluster} ${key}`)
        const where = cluster === 'east' ? east : cluster === 'west' ? west : api
        equal(client.server, where.server.url, 'the client is that of the cluster')
        equal(object?.metadata.uid, where.list('/api/v1/configmaps').find(({ metadata }) => key === `a/${metadata.name}`)?.metadata.uid)
      }
      manager.add(
        controller({
          name: 'both',
          for: configMapResource,
          clusters: ['east', 'west'],
          owns: [secretResource],
          reconcile: async request => reported(request),
        }),
      )
      manager.add(controller({ name: 'home', for: configMapResource, reconcile: async request => reported(request) }))
      throws(() => manager.informer(secretResource, { cluster: 'north' }), /no cluster "north"; known clusters: east, west/)
      west.intercept = (_request, response) => {
        response.destroy()
        return true
      }
      const starting = manager.start()
      await eventually(() => /configmaps in cluster west is not filled yet/.test(manager.readyz().reasons.join()), 'west is missing')
      west.intercept = undefined
      await starting
      east.put(path('x'))
      west.put(path('x'))
      api.put(path('x'))
      west.put('/api/v1/namespaces/a/secrets/s', {
        metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: 'u', controller: true }] },
      })
      await eventually(() => seen.length === 4, 'four reconciles')
      deepEqual(seen.sort(), ['east a/x', 'undefined a/x', 'west a/owner', 'west a/x'])
      equal(manager.informer(configMapResource, { cluster: 'east' }).get('a/x')?.metadata.uid, east.put(path('x')).metadata.uid)
      throws(() => new Manager({ client: clusters.east, clusters: { 'a|b': clusters.west } }), /name "a\|b" of a cluster/)
    },
    { clusters },
  )
  await Promise.all([...clients.map(client => client.close()), east.close(), west.close()])
})

test('probes: readiness follows the caches, liveness the controllers, metrics the registry, and series exist from the start', async () => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  let succeeded = 0
  await withManager(
    async ({ api, manager }) => {
      manager.add(
        maps({
          reconcile: async ({ name, attempt }) => {
            if (attempt > 0) {
              succeeded++
              return
            }
            if (name === 'bug') throw 'no error'
            if (name === 'terminal') throw new Error('outer', { cause: new TerminalError('inner') })
          },
        }),
      )
      api.intercept = (_request, response) => {
        response.destroy()
        return true
      }
      const starting = manager.start()
      await eventually(() => manager.probePort !== undefined, 'the port')
      const get = async (probe: string) => {
        const response = await fetch(`http://127.0.0.1:${manager.probePort}${probe}`)
        return `${response.status} ${await response.text()}`
      }
      match(await get('/readyz'), /^503 the cache of configmaps is not filled yet/)
      equal(await get('/healthz'), '200 ok\n')
      api.intercept = undefined
      await starting
      equal(await get('/readyz'), '200 ok\n')
      match(await get('/else'), /^404 /)
      const series = await get('/metrics')
      for (const line of [
        'controller_runtime_reconcile_total{controller="maps",result="error"} 0',
        'controller_runtime_reconcile_panics_total{controller="maps"} 0',
        'controller_runtime_reconcile_timeouts_total{controller="maps"} 0',
        'controller_runtime_max_concurrent_reconciles{controller="maps"} 10',
        'workqueue_depth{name="maps",controller="maps",priority="0"} 0',
        'workqueue_unfinished_work_seconds{name="maps",controller="maps"} 0',
        'workqueue_longest_running_processor_seconds{name="maps",controller="maps"} 0',
      ]) {
        ok(series.includes(line), `${line} in\n${series}`)
      }
      for (const name of ['bug', 'terminal']) api.put(path(name))
      await eventually(() => succeeded === 1, 'the bug is tried again')
      const after = await get('/metrics')
      ok(after.includes('controller_runtime_reconcile_panics_total{controller="maps"} 1'))
      ok(after.includes('controller_runtime_terminal_reconcile_errors_total{controller="maps"} 1'))
    },
    { registry, probes: { port: 0, host: '127.0.0.1' } },
  )
})

test('a conflict is retried and logged as an error only when it persists', async () => {
  await withManager(async ({ api, manager, lines }) => {
    let calls = 0
    manager.add(
      maps({
        reconcile: async () => {
          if (++calls <= 5) throw conflict({ group: '', plural: 'configmaps' }, 'x', 'moved on')
        },
      }),
    )
    await manager.start()
    api.put(path('x'))
    await eventually(() => calls === 6, 'five conflicts')
    const levels = lines.filter(({ err }) => err !== undefined).map(({ level }) => level)
    deepEqual(levels, [30, 30, 30, 50, 50])
  })
})

test('rejects options out of range by name', () => {
  const reconcile = async () => undefined
  throws(() => maps({ reconcile, resyncMs: 0 }), /resyncMs of controller maps must be a number > 0, got 0/)
  throws(() => maps({ reconcile, timeoutMs: -1 }), /timeoutMs of controller maps/)
  throws(() => maps({ reconcile, maxConcurrent: 0.5 }), /maxConcurrent of controller maps/)
})
