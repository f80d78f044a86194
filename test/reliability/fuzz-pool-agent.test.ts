/**
 * Malformed and valid answers of an API server to `oarlock pool`: Workers of any content, in lists, in watches and in responses to its writes. It
 * must continue, start only workers of pools that it serves, each once, and no more than it has room for.
 */
import { equal, ok } from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setImmediate as immediate } from 'node:timers/promises'
import fc from 'fast-check'
import { agentCaches, PoolAgent } from '../../src/app/pool-agent/pool-agent.ts'
import type { DriverListener } from '../../src/controllers/dispatch/index.ts'
import { createClient } from '../../src/kubernetes/client/index.ts'
import { Manager, silentLog } from '../../src/kubernetes/controller/index.ts'
import { eventually } from '../support/eventually.ts'
import { InMemoryApi } from '../support/in-memory-api.ts'
import { mostly, oneOf } from './endpoint-request.ts'

/** The full run has 100,000: OARLOCK_FUZZ_REQUESTS=100000 node --test test/reliability/fuzz-pool-agent.test.ts */
const total = Number(process.env.OARLOCK_FUZZ_REQUESTS ?? 200)
const seed = Number(process.env.OARLOCK_TEST_SEED ?? 20_261)
const maxWorkers = 5
const workersPath = '/apis/oarlock.dev/v1alpha1/workers'
const poolsPath = '/apis/oarlock.dev/v1alpha1/workerpools'

type Input =
  | { kind: 'worker'; name: string; fields: Record<string, unknown> }
  | { kind: 'delete'; name: string }
  | { kind: 'pool'; mode: unknown }
  | { kind: 'exit'; index: number; code: number | undefined }
  | { kind: 'event'; text: string }
  | { kind: 'watch'; how: 'break' | 'end' | 'compact' | 'resend' }
  /** To the next request that is no watch; without a status the connection is closed. */
  | { kind: 'response'; status: number | undefined; body: string }

const names = oneOf('w0', 'w1', 'w2', 'w3', 'w4', 'w5', 'w6', 'w7')
const anything = oneOf<unknown[]>(undefined, null, 5, 'x', '', [], {}, true, 1e308, '\u0000', { __proto__: null })
const spec = fc.record({
  pool: mostly<unknown>(['pool'], ['other', 'nope', '', null, 5, '__proto__']),
  slots: mostly<unknown>([1], [0, -1, 1.5, 1e9, null, 'x']),
  lifecycle: mostly<unknown>(['Warm', 'OneShot'], ['x', null, {}]),
  start: mostly<unknown>([true], [false, null, 'true', 1]),
  drain: mostly<unknown>([undefined], [true, 'x', null]),
})
const status = fc.record({
  phase: mostly<unknown>(['Pending', undefined], ['Starting', 'Ready', 'Busy', 'Draining', 'Failed', 'x', null, 5, {}]),
  agent: oneOf<unknown[]>(undefined, 'a', 'b', '', null, 5, {}),
  exitCode: anything,
  message: anything,
})
const metadata = fc.record(
  { creationTimestamp: anything, deletionTimestamp: anything, labels: anything, finalizers: anything, uid: anything },
  { requiredKeys: [] },
)
const fields = fc
  .record({
    spec: fc.oneof({ weight: 6, arbitrary: spec }, { weight: 1, arbitrary: anything }),
    status: fc.oneof({ weight: 6, arbitrary: status }, { weight: 1, arbitrary: anything }),
    metadata: fc.oneof({ weight: 4, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: metadata }),
  })
  .map(given => ({ apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', ...given }))
const texts = oneOf(
  ...['', '{', 'null', '[]', '{}', '"x"', '\0', '{"metadata":null}', '{"metadata":{"name":5}}', '{"kind":"Status","code":"x"}'],
  ...['{"items":null,"metadata":{}}', '{"items":[null,5,{}],"metadata":{"resourceVersion":"1"}}', '['.repeat(10_000), 'x'.repeat(100_000)],
)
const events = oneOf(
  ...[
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":null}',
    '{"type":"MODIFIED","object":{}}',
    '{"type":5,"object":{"metadata":{"name":"w0"}}}',
  ],
  ...[
    '{"type":"DELETED","object":{"metadata":{"name":"w1"}}}',
    '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}',
    'x',
    '\0',
  ],
  ...['{"type":"ERROR","object":{"code":410}}', '{"type":"ADDED","object":{"metadata":{"name":"w2","resourceVersion":"1"}}}', ''],
)
const inputs: fc.Arbitrary<Input> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: oneOf('worker'), name: names, fields }) },
  { weight: 4, arbitrary: fc.record({ kind: oneOf('delete'), name: names }) },
  { weight: 1, arbitrary: fc.record({ kind: oneOf('pool'), mode: mostly<unknown>(['Process'], ['Pod', 'External', null, 5]) }) },
  { weight: 4, arbitrary: fc.record({ kind: oneOf('exit'), index: fc.nat(maxWorkers), code: oneOf(0, 1, undefined) }) },
  { weight: 1, arbitrary: events.map(text => ({ kind: 'event', text }) as const) },
  { weight: 1, arbitrary: fc.record({ kind: oneOf('watch'), how: oneOf('break', 'end', 'compact', 'resend') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: oneOf('response'),
      status: oneOf(undefined, 200, 200, 201, 204, 400, 401, 403, 404, 409, 422, 500),
      body: texts,
    }),
  },
)

test(`${total} inputs: the pool agent continues, and starts only workers that it may`, { timeout: 3_600_000 }, async t => {
  const api = await InMemoryApi.start()
  const responses: { status: number | undefined; body: string }[] = []
  api.intercept = ({ query }, response: ServerResponse) => {
    const next = query.get('watch') === 'true' ? undefined : responses.shift()
    if (!next) return false
    if (next.status === undefined) response.destroy()
    else response.writeHead(next.status, { 'content-type': 'application/json' }).end(next.status === 204 ? undefined : next.body)
    return true
  }
  const putPool = (name: string, mode: unknown) =>
    api.put(`${poolsPath}/${name}`, { apiVersion: 'oarlock.dev/v1alpha1', kind: 'WorkerPool', spec: { mode } })
  putPool('pool', 'Process')
  putPool('other', 'Process')

  const client = await createClient({ cluster: { server: api.server.url } })
  const manager = new Manager({ client, log: silentLog })
  const running: string[] = []
  let started = 0
  let listener: DriverListener | undefined
  const problems: string[] = []
  const processes = {
    start: async ({ metadata: { name: pool } }: { metadata: { name: string } }, name: string) => {
      if (pool !== 'pool') problems.push(`started ${name} of pool ${pool}`)
      if (running.includes(name)) problems.push(`started ${name} twice`)
      running.push(name)
      started++
      if (running.length > maxWorkers) problems.push(`started ${running}`)
    },
    running: () => running.map(name => ({ name, pool: 'pool' })),
    stop: () => {},
    listen: (given: DriverListener) => {
      listener = given
    },
  }
  const agent = new PoolAgent({
    ...{ manager, processes, agent: 'a', maxWorkers, host: 'host', log: silentLog, served: new Set(['pool']), nowMs: Date.now },
    ...agentCaches(manager, ['pool']),
    prepare: async () => {},
    onClaim: () => {},
  })
  t.after(async () => {
    agent.close()
    await manager.stop()
    await client.close()
    await api.close()
  })
  const exit = (name: string | undefined, code: number | undefined) => {
    if (name === undefined) return
    running.splice(running.indexOf(name), 1)
    listener?.exited(name, code)
  }
  const apply = (input: Input) => {
    switch (input.kind) {
      case 'worker':
        return void api.put(`${workersPath}/${input.name}`, input.fields)
      case 'delete':
        return api.remove(`${workersPath}/${input.name}`)
      case 'pool':
        return void putPool('pool', input.mode)
      case 'exit':
        return exit(running[input.index], input.code)
      case 'event':
        return api.sendRaw(`${input.text}\n`)
      case 'watch':
        if (input.how === 'break') return api.breakWatches()
        if (input.how === 'end') return api.endWatches()
        return input.how === 'compact' ? api.compact() : api.resendEvents(5, 1)
      case 'response':
        return void (responses.length < 20 && responses.push(input))
    }
  }
  /** Without faults it does its work: it starts as many as it may of the workers that are requested. */
  const checkService = async (name: string) => {
    responses.length = 0
    while (running.length > 0) exit(running[0], 0)
    for (const each of api.list(workersPath)) api.remove(`${workersPath}/${each.metadata.name}`)
    putPool('pool', 'Process')
    for (let index = 0; index < 2 * maxWorkers; index++) {
      const spec = { pool: index % 4 === 3 ? 'other' : 'pool', slots: 1, lifecycle: 'Warm', start: true }
      const fields = { apiVersion: 'oarlock.dev/v1alpha1', kind: 'Worker', spec, status: { phase: 'Pending' } }
      api.put(`${workersPath}/${name}-${index}`, fields)
    }
    const isStarted = () => running.filter(each => each.startsWith(name)).length >= maxWorkers
    await eventually(isStarted, `seed ${seed}: the workers ${name} to be started`, 60_000)
    await agent.settled()
    equal(problems.join('\n'), '', `seed ${seed}`)
    for (const each of api.list(workersPath)) api.remove(`${workersPath}/${each.metadata.name}`)
    while (running.length > 0) exit(running[0], 0)
  }
  void manager.start()
  for (let part = 0; part * 100 < total; part++) {
    await checkService(`valid-${part}`)
    for (const input of fc.sample(inputs, { seed: seed + part, numRuns: 100 })) {
      apply(input)
      // The agent, the client and the server take turns.
      for (let turn = 0; turn < 4; turn++) await immediate()
    }
  }
  await checkService('valid')
  ok(started > total / 50, `${started} workers were started`)
})
