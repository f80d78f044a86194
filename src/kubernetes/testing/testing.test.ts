import { deepEqual, equal, match, notDeepEqual, ok, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import Type from 'typebox'
import { eventually } from '../../../test/support/eventually.ts'
import { configMapResource, crdResource } from '../client/index.ts'
import { controller, type Log, Manager, type ReconcileRequest, silentLog, WorkQueue } from '../controller/index.ts'
import { defineResource, isReason, type KubeObject } from '../object/index.ts'
import { type Faults, reconcileRequest, SeededScheduler, startTestServer, VirtualTimers, withFaults } from './index.ts'

const boatResource = defineResource({
  group: 'test.oarlock.dev',
  version: 'v1',
  kind: 'Boat',
  plural: 'boats',
  scope: 'Namespaced',
  description: 'A boat.',
  spec: Type.Object({ seats: Type.Integer() }),
  status: Type.Object({ manned: Type.Optional(Type.Integer()) }),
})

type BoatBody = NonNullable<(typeof boatResource)['body']>

test('a test server serves the kinds it was given, and is gone with its scope', async () => {
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
  test(`a controller under faults at 10% (seed ${seed}, ${streamLists ? 'lists over the watch' : 'pages of 20'}) brings every object to its status, and its cache ends equal to the server`, async () => {
    await using api = await startTestServer({ kinds: [boatResource] })
    const client = withFaults(api.client, {
      seed,
      drop: 0.02,
      dropAnswer: 0.02,
      delay: 0.02,
      delayMs: 5,
      conflict: 0.02,
      tooMany: 0.01,
      internal: 0.01,
      gone: 0.05,
      cutWatch: 0.05,
      duplicate: 0.02,
      repeatEvents: 0.1,
      lateEvents: 0.3,
    })
    const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 2, maxMs: 20 }, streamLists, pageSize: 20 } })
    const boats = manager.informer(boatResource)
    const last = new Map<string, string>()
    boats.onChange({
      added: boat => void last.set(boat.metadata.name, boat.metadata.resourceVersion),
      updated: (_, boat) => void last.set(boat.metadata.name, boat.metadata.resourceVersion),
      deleted: boat => void last.delete(boat.metadata.name),
    })
    let running = 0
    const overlaps: string[] = []
    const busy = new Set<string>()
    manager.add(
      controller({
        name: 'boats',
        for: boatResource,
        backoff: { baseDelayMs: 1, maxDelayMs: 20 },
        async reconcile({ key }) {
          if (busy.has(key)) overlaps.push(key)
          busy.add(key)
          running++
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
            busy.delete(key)
          }
        },
      }),
    )
    const direct = api.client.resource(boatResource)
    const names = Array.from({ length: 100 }, (_, index) => `boat-${index}`)
    const make = (some: string[]) =>
      Promise.all(some.map((name, index) => direct.create({ metadata: { name }, spec: { seats: index % 9 } })))
    // Half of them are there before, so that faults fall into the first list too.
    await make(names.slice(0, 50))
    await manager.start()
    await make(names.slice(50))
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
    const untilMs = performance.now() + 20_000
    let server = await isDone()
    while (!server) {
      ok(performance.now() < untilMs, `not done after 20 s: ${JSON.stringify(client.happened)}`)
      await new Promise(resolve => setTimeout(resolve, 20))
      server = await isDone()
    }
    deepEqual([...last].map(([name, version]) => `${name}@${version}`).sort(), server, 'handlers saw the last state of each')
    deepEqual(overlaps, [])
    ok(running >= 90)
    ok(client.happened.cutWatch + client.happened.drop + client.happened.repeatEvents > 0, JSON.stringify(client.happened))
    await manager.stop({ graceMs: 1_000 })
  })
}

const versionOf = ({ metadata }: KubeObject<unknown>) => `${metadata.name}@${metadata.resourceVersion}`

test('late events: a resumed watch brings what the one before brought, and a cache does not believe it', async () => {
  await using api = await startTestServer()
  const maps = api.client.resource(configMapResource)
  const faults: Faults = { lateEvents: 1 }
  const client = withFaults(api.client, faults)
  const manager = new Manager({ client, log: silentLog, listWatch: { backoff: { minMs: 2, maxMs: 5 } } })
  const cache = manager.informer(configMapResource, { labelSelector: 'set=late' })
  const told: string[] = []
  cache.onChange({ changed: ({ type, object }) => void told.push(`${type} ${object.metadata.name}`) })
  await manager.start()
  const make = (name: string) => maps.create({ metadata: { name, labels: { set: 'late' } } })
  await make('ghost')
  await eventually(() => cache.size === 1, 'the ghost lives')
  faults.cutWatch = 1
  await maps.delete('ghost')
  await eventually(() => client.happened.cutWatch > 0, 'its end does not get through')
  faults.cutWatch = 0
  await eventually(() => client.happened.lateEvents > 0 && told.includes('deleted ghost'), 'then it does, and the past after it')
  await make('next')
  await eventually(() => cache.size > 0, 'what comes next')
  deepEqual(told, ['added ghost', 'deleted ghost', 'added next'])
  await manager.stop({ graceMs: 1_000 })
})

test('faults follow from the seed, and only hit the requests they are meant for', async () => {
  await using api = await startTestServer()
  const outcomes = async (seed: number) => {
    const client = withFaults(api.client, { seed, internal: 0.5, only: ({ method }) => method === 'GET' })
    const results: string[] = []
    for (let index = 0; index < 20; index++) {
      results.push(
        (await client
          .resource(configMapResource)
          .get('none')
          .catch(error => (isReason(error, 'NotFound') ? 'asked' : 'failed'))) as string,
      )
    }
    await client.resource(configMapResource).create({ metadata: { generateName: 'x-' } })
    return results
  }
  const [first, again, other] = [await outcomes(3), await outcomes(3), await outcomes(4)]
  deepEqual(first, again)
  notDeepEqual(first, other)
  ok(first.includes('asked') && first.includes('failed'))
})

test('virtual time: backoff follows base × 2^failures up to its maximum, to the millisecond', async () => {
  const timers = new VirtualTimers()
  const queue = new WorkQueue({ baseDelayMs: 10, maxDelayMs: 100, timers })
  const waits: number[] = []
  for (let attempt = 0; attempt < 6; attempt++) {
    const askedMs = timers.nowMs()
    queue.addRateLimited('a')
    while (queue.length === 0) await timers.advance(1)
    waits.push(timers.nowMs() - askedMs)
    queue.done((await queue.get()) as string)
  }
  deepEqual(waits, [10, 20, 40, 80, 100, 100])
})

test('a seed replays the same interleaving, another gives another, and an error comes out', async () => {
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

test('two writers of one counter: a seed finds the lost update and replays it; with the version that was read there is none', async () => {
  await using api = await startTestServer({ kinds: [boatResource] })
  const boats = api.client.resource(boatResource)
  const takeSeat = async ({ object: boat, client }: ReconcileRequest<BoatBody>, isCareful: boolean) => {
    const handle = client.resource(boatResource)
    for (let present = boat ?? (await handle.get('ferry')); ; present = await handle.get('ferry')) {
      const { resourceVersion } = present.metadata
      try {
        const patch = { spec: { seats: present.spec.seats + 1 } }
        await handle.patch('ferry', patch, { type: 'merge', resourceVersion: isCareful ? resourceVersion : undefined })
        return
      } catch (error) {
        if (!isReason(error, 'Conflict')) throw error
      }
    }
  }
  const play = async (seed: number, isCareful: boolean) => {
    await boats.apply({ metadata: { name: 'ferry' }, spec: { seats: 0 } }, { force: true })
    const scheduler = new SeededScheduler(seed)
    const task = (name: string) => () =>
      takeSeat(reconcileRequest({ client: scheduler.client(api.client, name), key: 'default/ferry' }), isCareful)
    await scheduler.run([task('one'), task('two')])
    return { seats: (await boats.get('ferry')).spec.seats, trace: scheduler.trace.join('; ') }
  }
  const seeds = Array.from({ length: 20 }, (_, index) => index)
  const careless = new Map<number, Awaited<ReturnType<typeof play>>>()
  for (const seed of seeds) careless.set(seed, await play(seed, false))
  const losing = seeds.filter(seed => careless.get(seed)?.seats === 1)
  ok(losing.length > 0 && losing.length < seeds.length, losing.join())
  for (const seed of losing) deepEqual(await play(seed, false), careless.get(seed), `seed ${seed} again`)
  for (const seed of seeds) equal((await play(seed, true)).seats, 2, `seed ${seed}`)
})

test('a nonsense result, a thrown non-error and a priority that is no number are errors of their key, and the others go on', async () => {
  await using api = await startTestServer({ kinds: [boatResource] })
  const manager = new Manager({ client: api.client, log: silentLog })
  const boats = manager.informer(boatResource)
  const order: string[] = []
  const tries = new Map<string, number>()
  manager.add(
    controller({
      name: 'odd',
      for: boatResource,
      maxConcurrent: 1,
      backoff: { baseDelayMs: 1, maxDelayMs: 5 },
      priority: boat => boat.spec.seats,
      async reconcile({ key, name, attempt }) {
        tries.set(name, attempt)
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
  const untilMs = performance.now() + 10_000
  const isDone = () => names.slice(0, 5).every(name => (tries.get(name) ?? 0) >= 1)
  while (!isDone()) {
    ok(performance.now() < untilMs, JSON.stringify([...tries]))
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  equal(tries.get('fine'), 0)
  equal(order[0], 'fine', 'the highest priority of what was there at the start goes first')
  await manager.stop({ graceMs: 1_000 })
})

test('a kind whose CRD is missing is told in readyz and asked for again; the others go on, and it works when its CRD comes', async () => {
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
  await eventually(() => done.includes('default/map') && manager.readyz().reasons.join().includes('CRD'), 'the other works')
  match(
    manager.readyz().reasons.join(),
    /the server has no boats of test.oarlock.dev\/v1: is the CRD boats.test.oarlock.dev applied, and does it serve v1\?/,
  )
  equal(manager.healthz().ok, true, 'a restart would not help')
  ok(lines.length > 0, 'and in the log')
  await api.client.resource(crdResource).create(boatResource.toCrd())
  await starting
  await api.client.resource(boatResource).create({ metadata: { name: 'late' }, spec: { seats: 1 } })
  await eventually(() => done.includes('default/late'), 'the late kind works')
  equal(manager.readyz().ok, true)
  await manager.stop({ graceMs: 1_000 })
})
