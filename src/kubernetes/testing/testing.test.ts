import { deepEqual, equal, match, notDeepEqual, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import { boatResource } from '../../../test/support/boat.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { configMapResource, crdResource } from '../client/index.ts'
import { controller, type Log, Manager, type ReconcileRequest, silentLog, WorkQueue } from '../controller/index.ts'
import { isReason, type KubeObject } from '../object/index.ts'
import { type Faults, reconcileRequest, SeededScheduler, startTestServer, VirtualTimers, withFaults } from './index.ts'

type BoatBody = NonNullable<(typeof boatResource)['body']>

test('a test server serves the given kinds, and is closed at the end of its scope', async () => {
  let address: string
  {
    await using api = await startTestServer({ kinds: [boatResource] })
    address = api.server.url
    const boats = api.client.resource(boatResource)
    await boats.create({ metadata: { name: 'a' }, spec: { seats: 4 } })
    equal((await boats.get('a')).spec.seats, 4)
  }
  await rejects(fetch(address))
})

for (const { seed, streamLists } of [
  { seed: 7, streamLists: true },
  { seed: 8, streamLists: false },
  { seed: 9, streamLists: false },
]) {
  test(`a controller with 10% faults (seed ${seed}, ${streamLists ? 'streaming lists' : 'pages of 20'}) completes every object, and its cache equals the server`, async () => {
    await using api = await startTestServer({ kinds: [boatResource] })
    const client = withFaults(api.client, {
      seed,
      drop: 0.02,
      dropResponse: 0.02,
      delay: 0.02,
      delayMs: 5,
      conflict: 0.02,
      tooManyRequests: 0.01,
      internalError: 0.01,
      expired: 0.05,
      breakWatch: 0.05,
      duplicate: 0.02,
      repeatEvents: 0.1,
      staleEvents: 0.3,
    })
    const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 2, maxMs: 20 }, streamLists, pageSize: 20 } })
    const boats = manager.informer(boatResource)
    const last = new Map<string, string>()
    boats.onChange({
      added: boat => void last.set(boat.metadata.name, boat.metadata.resourceVersion),
      updated: (_, boat) => void last.set(boat.metadata.name, boat.metadata.resourceVersion),
      deleted: boat => void last.delete(boat.metadata.name),
    })
    let reconciles = 0
    const overlaps: string[] = []
    const processing = new Set<string>()
    manager.add(
      controller({
        name: 'boats',
        for: boatResource,
        backoff: { baseDelayMs: 1, maxDelayMs: 20 },
        async reconcile({ key }) {
          if (processing.has(key)) overlaps.push(key)
          processing.add(key)
          reconciles++
          try {
            const boat = boats.get(key)
            if (!boat || boat.status?.manned === boat.spec.seats) return
            const { name, namespace, resourceVersion } = boat.metadata
            boats.applyLocal(
              await client
                .resource(boatResource)
                .patchStatus(name, { status: { manned: boat.spec.seats } }, { namespace, resourceVersion }),
            )
          } finally {
            processing.delete(key)
          }
        },
      }),
    )
    const direct = api.client.resource(boatResource)
    const names = Array.from({ length: 100 }, (_, index) => `boat-${index}`)
    const create = (some: string[]) =>
      Promise.all(some.map((name, index) => direct.create({ metadata: { name }, spec: { seats: index % 9 } })))
    // Half of them exist before the start, so that faults affect the first list too.
    await create(names.slice(0, 50))
    await manager.start()
    await create(names.slice(50))
    for (let round = 0; round < 3; round++) {
      await Promise.all(names.map(name => direct.patch(name, { spec: { seats: 10 + round } }, { type: 'merge' })))
    }
    await Promise.all(names.slice(0, 10).map(name => direct.delete(name)))

    const isDone = async () => {
      const { items } = await direct.list({ namespace: 'default' })
      const isManned = items.every(({ spec, status }) => status?.manned === spec.seats)
      const server = items.map(versionOf).sort()
      return isManned && items.length === 90 && server.join() === boats.list().map(versionOf).sort().join() ? server : undefined
    }
    const server = await eventually(isDone, 'every object to be complete and cached').catch(error => {
      throw new Error(`${error.message}: ${JSON.stringify(client.injected)}`)
    })
    deepEqual([...last].map(([name, version]) => `${name}@${version}`).sort(), server, 'handlers received the last state of each')
    deepEqual(overlaps, [])
    ok(reconciles >= 90)
    ok(client.injected.breakWatch + client.injected.drop + client.injected.repeatEvents > 0, JSON.stringify(client.injected))
    await manager.stop({ graceMs: 1_000 })
  })
}

const versionOf = ({ metadata }: KubeObject<unknown>) => `${metadata.name}@${metadata.resourceVersion}`

test('stale events: a resumed watch sends events of the previous one again, and the cache ignores them', async () => {
  await using api = await startTestServer()
  const maps = api.client.resource(configMapResource)
  const faults: Faults = { staleEvents: 1 }
  const client = withFaults(api.client, faults)
  const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 2, maxMs: 5 } } })
  const cache = manager.informer(configMapResource, { labelSelector: 'set=stale' })
  const changes: string[] = []
  cache.onChange({ changed: ({ type, object }) => void changes.push(`${type} ${object.metadata.name}`) })
  await manager.start()
  const create = (name: string) => maps.create({ metadata: { name, labels: { set: 'stale' } } })
  await create('first')
  await eventually(() => cache.size === 1, 'the object in the cache')
  faults.breakWatch = 1
  await maps.delete('first')
  await eventually(() => client.injected.breakWatch > 0, 'a broken watch instead of the DELETED event')
  faults.breakWatch = 0
  await eventually(() => client.injected.staleEvents > 0 && changes.includes('deleted first'), 'the deletion, followed by stale events')
  await create('second')
  await eventually(() => cache.size > 0, 'the second object in the cache')
  deepEqual(changes, ['added first', 'deleted first', 'added second'])
  await manager.stop({ graceMs: 1_000 })
})

test('faults follow from the seed, and affect the filtered requests only', async () => {
  await using api = await startTestServer()
  const outcomes = async (seed: number) => {
    const client = withFaults(api.client, { seed, internalError: 0.5, filter: ({ method }) => method === 'GET' })
    const results: string[] = []
    for (let index = 0; index < 20; index++) {
      results.push(
        (await client
          .resource(configMapResource)
          .get('none')
          .catch(error => (isReason(error, 'NotFound') ? 'sent' : 'failed'))) as string,
      )
    }
    await client.resource(configMapResource).create({ metadata: { generateName: 'x-' } })
    return results
  }
  const [first, again, other] = [await outcomes(3), await outcomes(3), await outcomes(4)]
  deepEqual(first, again)
  notDeepEqual(first, other)
  ok(first.includes('sent') && first.includes('failed'))
})

test('virtual time: the backoff is base × 2^failures up to its maximum, to the millisecond', async () => {
  const timers = new VirtualTimers()
  const queue = new WorkQueue({ baseDelayMs: 10, maxDelayMs: 100, timers })
  const waits: number[] = []
  for (let attempt = 0; attempt < 6; attempt++) {
    const addedMs = timers.nowMs()
    queue.addRateLimited('a')
    while (queue.length === 0) await timers.advance(1)
    waits.push(timers.nowMs() - addedMs)
    queue.done((await queue.get()) as string)
  }
  deepEqual(waits, [10, 20, 40, 80, 100, 100])
})

test('a seed replays an interleaving, another seed gives another one, and an error rejects the run', async () => {
  const play = async (seed: number) => {
    const scheduler = new SeededScheduler(seed)
    await scheduler.run(
      ['a', 'b', 'c'].map(name => async () => {
        for (let step = 0; step < 4; step++) await scheduler.step(`${name}${step}`)
      }),
    )
    return scheduler.trace.join(' ')
  }
  equal(await play(1), await play(1))
  notDeepEqual(await play(1), await play(2))
  const failing = new SeededScheduler(1)
  await rejects(failing.run([async () => failing.step('x').then(() => Promise.reject(new Error('here')))]), /here/)
})

test('two writers of one counter: a seed reproduces the lost update, and a precondition on resourceVersion prevents it', async () => {
  await using api = await startTestServer({ kinds: [boatResource] })
  const boats = api.client.resource(boatResource)
  const takeSeat = async ({ object: boat, client }: ReconcileRequest<BoatBody>, hasPrecondition: boolean) => {
    const handle = client.resource(boatResource)
    for (let present = boat ?? (await handle.get('ferry')); ; present = await handle.get('ferry')) {
      const { resourceVersion } = present.metadata
      try {
        const patch = { spec: { seats: present.spec.seats + 1 } }
        await handle.patch('ferry', patch, { type: 'merge', resourceVersion: hasPrecondition ? resourceVersion : undefined })
        return
      } catch (error) {
        if (!isReason(error, 'Conflict')) throw error
      }
    }
  }
  const play = async (seed: number, hasPrecondition: boolean) => {
    await boats.apply({ metadata: { name: 'ferry' }, spec: { seats: 0 } }, { force: true })
    const scheduler = new SeededScheduler(seed)
    const task = (name: string) => () =>
      takeSeat(reconcileRequest({ client: scheduler.client(api.client, name), key: 'default/ferry' }), hasPrecondition)
    await scheduler.run([task('one'), task('two')])
    return { seats: (await boats.get('ferry')).spec.seats, trace: scheduler.trace.join('; ') }
  }
  const seeds = Array.from({ length: 20 }, (_, index) => index)
  const unprotected = new Map<number, Awaited<ReturnType<typeof play>>>()
  for (const seed of seeds) unprotected.set(seed, await play(seed, false))
  const losing = seeds.filter(seed => unprotected.get(seed)?.seats === 1)
  ok(losing.length > 0 && losing.length < seeds.length, losing.join())
  for (const seed of losing) deepEqual(await play(seed, false), unprotected.get(seed), `seed ${seed} again`)
  for (const seed of seeds) equal((await play(seed, true)).seats, 2, `seed ${seed}`)
})

test('an invalid result, a thrown non-error and a priority that is not a number fail their key only', async () => {
  await using api = await startTestServer({ kinds: [boatResource] })
  const manager = new Manager({ client: api.client, log: silentLog })
  const boats = manager.informer(boatResource)
  const order: string[] = []
  const attempts = new Map<string, number>()
  manager.add(
    controller({
      name: 'odd',
      for: boatResource,
      maxConcurrent: 1,
      backoff: { baseDelayMs: 1, maxDelayMs: 5 },
      priority: boat => boat.spec.seats,
      async reconcile({ key, name, attempt }) {
        attempts.set(name, attempt)
        order.push(name)
        if (attempt > 0 || !boats.get(key)) return undefined
        switch (name) {
          case 'text':
            throw 'just text'
          case 'nothing':
            throw undefined
          case 'number':
            return 7 as never
          case 'negative':
            return { requeueAfterMs: -1 }
          case 'priority':
            return { requeueAfterMs: 1, priority: 'high' as never }
          default:
            return undefined
        }
      },
    }),
  )
  const names = ['text', 'nothing', 'number', 'negative', 'priority', 'fine']
  for (const [index, name] of names.entries()) {
    await api.client.resource(boatResource).create({ metadata: { name }, spec: { seats: index } })
  }
  await manager.start()
  await eventually(() => names.slice(0, 5).every(name => (attempts.get(name) ?? 0) >= 1), 'a retry of every failed key')
  equal(attempts.get('fine'), 0)
  equal(order[0], 'fine', 'the highest priority of the initial objects goes first')
  await manager.stop({ graceMs: 1_000 })
})

test('a kind without its CRD is reported in readyz and retried, other controllers run, and it starts when the CRD is created', async () => {
  await using api = await startTestServer()
  const lines: string[] = []
  const log: Log = {
    ...{ debug: () => undefined, info: () => undefined, error: () => undefined },
    warn: fields => void lines.push(String((fields as { err?: Error }).err?.message)),
    child: () => log,
  }
  const manager = new Manager({ client: api.client, log, listWatch: { backoff: { minMs: 5, maxMs: 50 } } })
  const done: string[] = []
  const reconcile = async ({ key }: { key: string }) => void done.push(key)
  manager.add(controller({ name: 'boats', for: boatResource, reconcile }))
  manager.add(controller({ name: 'maps', for: configMapResource, reconcile }))
  const starting = manager.start()
  await api.client.resource(configMapResource).create({ metadata: { name: 'map' } })
  await eventually(() => done.includes('default/map') && manager.readyz().reasons.join().includes('CRD'), 'the other controller to run')
  match(
    manager.readyz().reasons.join(),
    /the server has no boats of test.oarlock.dev\/v1: is the CRD boats.test.oarlock.dev applied, and does it serve v1\?/,
  )
  equal(manager.healthz().ok, true, 'a restart would not help')
  ok(lines.length > 0, 'a warning in the log')
  await api.client.resource(crdResource).create(boatResource.toCrd())
  await starting
  await api.client.resource(boatResource).create({ metadata: { name: 'late' }, spec: { seats: 1 } })
  await eventually(() => done.includes('default/late'), 'the late kind to be reconciled')
  equal(manager.readyz().ok, true)
  await manager.stop({ graceMs: 1_000 })
})
