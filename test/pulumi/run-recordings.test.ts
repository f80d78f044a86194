/**
 * The recorded conversations, replayed as they are in production: with the endpoint and the backend of a Run, and the state store over HTTP. What no Run executes
 * is in `recordings.test.ts` only.
 */
import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { describe, test } from 'node:test'
import { deploymentOf } from '../../src/execution/engine/pulumi/results.ts'
import { LockedError } from '../../src/stores/state/index.ts'
import { acknowledgedState, exchangesOf, type StateSummary, summarize } from './expected-state.ts'
import { decodeRecording, type RecordedExchange, type Recording } from './recording.ts'
import { replayOnRun } from './replay-run.ts'
import { type RunEndpoint, type StacksServer, withStateServerOfStacks } from './run-endpoint.ts'

/** Their commands are not those of a Run. */
const foreign = ['import-export', 'stack-commands']
/** Their refusals come from the state store, with a test of their own. */
const refused = ['conflict', 'fencing', 'too-large']

const open = (name: string): Recording => decodeRecording(readFileSync(join(import.meta.dirname, 'recordings', `${name}.jsonl.zst`)))
const names = globSync(join(import.meta.dirname, 'recordings', '*.jsonl.zst'))
  .map(file => basename(file, '.jsonl.zst'))
  .sort()
const replayed = names.filter(name => ![...foreign, ...refused].includes(name))

const readSummary = async ({ state }: RunEndpoint): Promise<StateSummary> => summarize(deploymentOf((await state.readPulumiState())?.bytes))
const isAppend = ({ path }: RecordedExchange) => path.endsWith('/journalentries')

describe('replays on Runs', () => {
  for (const name of replayed)
    test(`${name}: the Run's endpoint answers as the recorded one, and the store has the state afterwards`, () =>
      withStateServerOfStacks(async server => {
        const recording = open(name)
        const { differences, run, sent, requests } = await replayOnRun(server, recording, { stack: name })
        deepEqual(differences, [])
        equal(requests, exchangesOf(recording).length)
        ok(sent > 10)
        // The oracle does not apply differences between checkpoints.
        if (name !== 'delta-checkpoints') deepEqual(await readSummary(run), acknowledgedState(recording, requests))
        deepEqual([run.stops, run.errors], [[], []])
        await run.end()
        equal(await server.store.currentLock(name), undefined)
      }))

  test('a different answer is found', () =>
    withStateServerOfStacks(async server => {
      const recording = open('second-up')
      const change = (line: RecordedExchange) =>
        Buffer.from(line.answer ?? '', 'base64')
          .toString()
          .replace('"urn:', '"urn_')
      const lines = recording.lines.map(line =>
        line.kind === 'exchange' && line.path.endsWith('/export')
          ? { ...line, answer: Buffer.from(change(line)).toString('base64') }
          : line,
      )
      const { differences, run } = await replayOnRun(server, { ...recording, lines }, { stack: 'different' })
      deepEqual(
        differences.map(each => each.request.replace(/^\d+: /, '')),
        ['GET /api/stacks/apps/web/dev/export'],
      )
      await run.end()
    }))

  test('fencing: the next Run takes the lock, the store refuses the entries of the first one and keeps them, and its CLI gets 403', () =>
    withStateServerOfStacks(async server => {
      const recording = open('fencing')
      const refusedAt = exchangesOf(recording).findIndex(each => isAppend(each) && each.status === 403)
      const runs: { next?: RunEndpoint } = {}
      const replay = await replayOnRun(server, recording, {
        stack: 'fenced',
        onRequest: async (exchange, { runName, takeOver }) => {
          if (exchange.status !== 403 || runs.next) return
          server.abandoned.add(runName)
          runs.next = await takeOver()
        },
      })
      deepEqual(replay.differences, [])
      deepEqual(replay.run.stops[0], 'OwnershipLost')
      const { store } = server
      const orphans = (await store.orphans('fenced')).map(({ kind, reason, epoch }) => ({ kind, reason, epoch }))
      deepEqual(orphans, [{ kind: 'pulumi-journal', reason: 'StaleEpoch', epoch: 2 }])
      const [orphan] = await store.orphans('fenced')
      const kept = await store.readVersion({ stackUid: 'fenced', version: orphan!.version })
      match(kept?.bytes.toString() ?? '', /"kind":1.*"id":"[0-9a-f-]{36}"/)
      const next = runs.next!
      deepEqual(await readSummary(next), acknowledgedState(recording, refusedAt))
      deepEqual((await readSummary(next)).pending, ['creating urn:pulumi:dev::web::pulumi:providers:pulumi-nodejs::default'])
      await rejects(replay.run.end(), LockedError)
      equal((await store.currentLock('fenced'))?.holder.kind, 'Run', 'the end of the fenced Run released the lock of the next one')
      await next.end()
      equal(await store.currentLock('fenced'), undefined)
    }))

  test('conflict: a second update of the stack is answered with 409 while the first one is running', () =>
    withStateServerOfStacks(async server => {
      const recording = open('up')
      const running = exchangesOf(recording).findIndex(isAppend) + 3
      const { run } = await replayOnRun(server, recording, { stack: 'busy', until: running })
      const before = await readSummary(run)
      const { differences } = await replayOnRun(server, open('conflict'), { stack: 'busy', run })
      const found = differences.map(({ request, received }) => [request.replace(/^\d+: (\w+) .*/, '$1'), received.slice(0, 3)])
      deepEqual(found, [
        ['GET', '200'],
        ['POST', '409'],
      ])
      match(differences[0]?.received ?? '', /"activeUpdate":"[0-9a-f-]{36}"/)
      match(differences[1]?.received ?? '', /another update of the stack dev is in progress/)
      deepEqual(await readSummary(run), before)
      await run.end()
    }))

  test('too-large: the store refuses batches beyond its limit, the halves are accepted, and no entry is lost or stored twice', () =>
    withStateServerOfStacks(
      async server => {
        const recording = open('too-large')
        const { differences, run } = await replayOnRun(server, recording, { stack: 'large' })
        const wasRefused = exchangesOf(recording).filter(each => each.status === 413).length
        // The recorded endpoint refused every batch of several entries; the store accepts those below its limit, and then again their halves.
        deepEqual(
          differences.map(({ expected, received }) => `${expected.slice(0, 3)} ${received.trim()}`),
          differences.map(() => '413 200 {}'),
        )
        equal(wasRefused - differences.length, 9)
        deepEqual(await readSummary(run), acknowledgedState(recording, exchangesOf(recording).length))
        await run.end()
      },
      { limits: { journalBatchBytes: 5_000 } },
    ))

  for (const name of foreign)
    test(`${name}: a Run refuses what would replace, rename or delete its stack, and the state stays as it is`, () =>
      withStateServerOfStacks(async server => {
        const { differences, run } = await replayOnRun(server, open(name), { stack: name, withForeignCommands: true })
        const answers = new Map(differences.map(({ request, received }) => [request.replace(/^\d+: /, ''), received.slice(0, 3)]))
        const changing = exchangesOf(open(name)).filter(({ method, path }) => method !== 'GET' && /\/(import|rename)$/.test(path))
        ok(changing.length > 0)
        for (const { method, path } of changing) equal(answers.get(`${method} ${path}`), '403')
        const newest = await run.state.readPulumiState()
        equal(newest?.version, 1)
        await run.end()
      }))
})

/** A CLI is killed after the request with this number. `CLI`: the worker ends the Run; `Worker`: it is killed too, and a later Run breaks its lock. */
type KillPoint = { readonly until: number; readonly killed: 'CLI' | 'Worker' }

/** At the points of these both are killed, at those of the others the one and the other in turn. */
const thorough = ['up', 'destroy']

/** After the first request, and after each one that starts, writes or ends an update: the others do not reach the state. */
function killPoints(recording: Recording): KillPoint[] {
  const isPoint = ({ method, path }: RecordedExchange, index: number) =>
    index === 0 || (method !== 'GET' && /\/(journalentries|checkpoint|complete|cancel|update\/[^/]+)$/.test(path))
  const points = exchangesOf(recording).flatMap((exchange, index) => (isPoint(exchange, index) ? [index + 1] : []))
  if (!thorough.includes(recording.header.scenario)) return points.map((until, i) => ({ until, killed: i % 2 === 0 ? 'CLI' : 'Worker' }))
  return points.flatMap(until => (['CLI', 'Worker'] as const).map(killed => ({ until, killed })))
}

describe('kills', () => {
  const killable = replayed.filter(name => name !== 'delta-checkpoints')

  test('updates are killed at more than 20 points, most of them with a resource in flight', () => {
    const points = killable.flatMap(name => killPoints(open(name)).map(({ until }) => acknowledgedState(open(name), until)))
    const inFlight = points.filter(({ pending }) => pending.length > 0)
    ok(points.length >= 150, `${points.length} points`)
    ok(inFlight.length >= 60, `${inFlight.length} with operations in flight`)
  })

  for (const name of killable)
    test(`${name} killed after each request that changes something: the state has exactly what was acknowledged, operations in flight are pending, and no lock remains`, () =>
      withStateServerOfStacks(async server => {
        const recording = open(name)
        for (const point of killPoints(recording)) await checkKill(server, recording, point)
      }))
})

async function checkKill(server: StacksServer, recording: Recording, { until, killed }: KillPoint): Promise<void> {
  const { store, abandoned } = server
  const where = `killed ${killed} after request ${until}`
  const stack = `${recording.header.scenario}-${until}-${killed.toLowerCase()}`
  const { run, differences } = await replayOnRun(server, recording, { stack, until })
  deepEqual(differences, [], where)
  const expected = acknowledgedState(recording, until)
  if (killed === 'CLI') {
    await run.end()
    equal(await store.currentLock(stack), undefined, `${where}: the lock remains`)
  } else {
    await run.killWorker()
    await rejects(run.takeOver(), LockedError, `${where}: the Run is not declared ended`)
    abandoned.add(run.runName)
  }
  const next = await run.takeOver()
  deepEqual(await readSummary(next), expected, where)
  await next.end()
  equal(await store.currentLock(stack), undefined, `${where}: the lock of the next Run remains`)
  deepEqual(summarize(deploymentOf((await store.readVersion({ stackUid: stack, kind: 'pulumi' }))?.bytes)), expected, where)
  deepEqual(await store.orphans(stack), [], where)
}
