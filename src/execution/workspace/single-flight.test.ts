import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from '../../../test/support/eventually.ts'
import { ContentStore } from './content-store.ts'
import { completeFlights, type Flight } from './single-flight.ts'

function setUp(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), 'oarlock-test-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  const store = new ContentStore({ directory, domain: 'd' })
  const made: string[] = []
  const log: string[] = []
  /** A flight of the caller `by` that makes a file after `ms`. */
  const flight = (name: string, by: string, ms = 20, onMake: () => unknown = () => undefined): Flight => ({
    lock: name,
    title: name,
    take: async () => existsSync(join(directory, name)),
    make: async () => {
      made.push(`${by}: ${name}`)
      if ((await onMake()) === 'failed') return
      await delay(ms)
      writeFileSync(join(directory, name), '')
    },
  })
  const complete = (by: string, flights: Flight[], more: { signal?: AbortSignal; maxWaitMs?: number } = {}) =>
    completeFlights(flights, {
      lock: (name, description) => store.lock(name, description),
      description: by,
      signal: new AbortController().signal,
      log: line => void log.push(`${by}: ${line}`),
      ...more,
    })
  /** Another process that locks `name` and keeps it. */
  const holdInProcess = async (name: string) => {
    const script = `
      import { ContentStore } from ${JSON.stringify(new URL('./content-store.ts', import.meta.url).href)}
      const found = await new ContentStore({ directory: ${JSON.stringify(directory)}, domain: 'd' }).lock(${JSON.stringify(name)}, 'a process')
      console.log('unlock' in found)
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    t.after(() => child.kill('SIGKILL'))
    const [chunk] = await once(child.stdout, 'data')
    equal(String(chunk).trim(), 'true')
    return child
  }
  return { store, directory, made, log, flight, complete, holdInProcess }
}

test('of 20 callers that need the same two things in different orders, one makes each, and the others wait for it', async t => {
  const { made, log, flight, complete } = setUp(t)
  const callers = Array.from({ length: 20 }, (_, index) => {
    const flights = [flight('x', `run-${index}`, 300), flight('y', `run-${index}`, 300)]
    return complete(`run-${index}`, index % 2 === 0 ? flights : flights.reverse())
  })
  deepEqual(await Promise.all(callers), Array(20).fill([]))
  deepEqual(made.map(line => line.split(': ')[1]).sort(), ['x', 'y'])
  ok(new Set(made.map(line => line.split(': ')[0])).size === 2, `two callers make them at the same time: ${made}`)
  match(log.join('\n'), /^run-\d+: x: waiting for run-\d+$/m)
  match(log.join('\n'), /^run-\d+: y: waited 0\.\d s for run-\d+$/m)
})

test('a caller that fails is followed by one that waits', async t => {
  const { made, flight, complete } = setUp(t)
  const first = complete('a', [flight('x', 'a', 0, () => delay(200, 'failed'))])
  await delay(50)
  await Promise.all([first, complete('b', [flight('x', 'b')])])
  deepEqual(made, ['a: x', 'b: x'])
})

test('a caller whose process is killed is followed by one that waits, and its lock is not waited for again', async t => {
  const { made, log, flight, complete, holdInProcess } = setUp(t)
  const child = await holdInProcess('x')
  const waiting = Promise.all(['a', 'b', 'c'].map(by => complete(by, [flight('x', by)])))
  await eventually(() => log.includes('a: x: waiting for a process'), 'a to wait')
  deepEqual(made, [])
  child.kill('SIGKILL')
  await waiting
  equal(made.length, 1)
})

test('a caller that is canceled while it waits stops immediately', async t => {
  const { made, flight, complete, holdInProcess } = setUp(t)
  await holdInProcess('x')
  const abort = new AbortController()
  const waiting = complete('a', [flight('x', 'a')], { signal: abort.signal })
  waiting.catch(() => {})
  await delay(100)
  const beforeMs = performance.now()
  abort.abort()
  await rejects(waiting, { name: 'AbortError' })
  // It looks at the lock every 100 ms, and waits for minutes.
  ok(performance.now() - beforeMs < 5_000)
  deepEqual(made, [])
})

test('a caller makes what is free before it waits, and does not wait longer than its limit', async t => {
  const { made, log, flight, complete, holdInProcess } = setUp(t)
  await holdInProcess('x')
  const left = await complete('a', [flight('x', 'a'), flight('y', 'a')], { maxWaitMs: 250 })
  deepEqual([left.map(({ lock }) => lock), made], [['x'], ['a: y']])
  match(log.at(-1) ?? '', /^a: x: not waiting any longer, after 0\.\d s$/)
})

test('a lock is of one trust domain, and is released only by its holder', async t => {
  const { store, directory } = setUp(t)
  const first = await store.lock('x', 'a')
  ok('unlock' in first)
  ok('unlock' in (await new ContentStore({ directory, domain: 'd', trustDomain: 'other' }).lock('x', 'b')))
  deepEqual(await store.lock('x', 'b'), { holder: 'a' })
  await first.unlock()
  const second = await store.lock('x', 'b')
  ok('unlock' in second)
  await first.unlock()
  deepEqual(await store.lock('x', 'c'), { holder: 'b' })
})
