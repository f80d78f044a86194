import { deepEqual, equal, match, rejects } from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { followStartedProcesses } from '../../../test/support/started-processes.ts'
import { LimitedProcess } from './limited-process.ts'
import { abortRequest } from './limited-requests.testing.ts'
import { RequestLimitError } from './limited-requests.ts'

function open(t: TestContext, limits: { timeoutMs?: number; maxHeapMb?: number } = {}) {
  const echo = new LimitedProcess<string, string>('kubernetes/util/echo-process.testing', {
    ...{ name: 'echo', timeoutMs: 60_000, maxHeapMb: 64, ...limits },
  })
  t.after(() => echo.close())
  return echo
}

function follow(t: TestContext) {
  const processes = followStartedProcesses()
  t.after(processes.stop)
  return processes.all
}

test('a request that takes too long is aborted, also in a loop that never yields, and the next one is answered', async t => {
  const echo = open(t, { timeoutMs: 2_000 })
  for (const request of ['never', 'loop']) {
    await rejects(echo.request(request), new RequestLimitError('echo', '2 s'))
    equal(await echo.request('hello'), 'hello')
  }
})

test('a request that takes too much memory is aborted, also with a single allocation, and the next one is answered', async t => {
  const echo = open(t, { maxHeapMb: 48 })
  for (const request of ['fill', 'set']) {
    await rejects(echo.request(request), new RequestLimitError('echo', '48 MB of memory'))
    equal(await echo.request('hello'), 'hello')
  }
})

test('an error that responding throws is the error of the request, and the process answers the next one', async t => {
  const children = follow(t)
  const echo = open(t)
  await rejects(echo.request('throw'), (error: Error) => error instanceof SyntaxError && error.message === 'asked to throw')
  equal(await echo.request('hello'), 'hello')
  equal(children.length, 1)
})

test('a process that cannot start is an error of the request, and the next one is answered', async t => {
  const { execPath } = process
  t.after(() => {
    process.execPath = execPath
  })
  const echo = open(t)
  process.execPath = '/missing/node'
  await rejects(echo.request('hello'), /^Error: cannot start process echo: .*ENOENT/)
  process.execPath = execPath
  equal(await echo.request('hello'), 'hello')
})

test('a request that cannot be serialized rejects, and the next one is answered', async t => {
  const echo = open(t)
  await rejects(echo.request((() => {}) as unknown as string), /could not be cloned/)
  equal(await echo.request('hello'), 'hello')
})

test('a process that exits is no limit, and is replaced', async t => {
  const echo = open(t)
  const isExit = (error: Error) => !(error instanceof RequestLimitError) && /^process echo has ended with exit code 3/.test(error.message)
  await rejects(echo.request('exit'), isExit)
  equal(await echo.request('hello'), 'hello')
})

test('a request that is aborted rejects with the reason of its signal when the process has ended', async t => {
  const children = follow(t)
  const echo = open(t)
  const signal = await abortRequest(echo)
  equal(children[0]?.signalCode, 'SIGKILL')
  await rejects(echo.request('hello', signal), signal.reason)
  equal(await echo.request('hello'), 'hello')
})

test('closing ends the process and its request', async t => {
  const children = follow(t)
  const echo = open(t)
  equal(await echo.request('hello'), 'hello')
  const pending = echo.request('loop').catch(error => error.message)
  await echo.close()
  deepEqual(
    children.map(child => child.signalCode),
    ['SIGKILL'],
  )
  match(await pending, /has ended/)
})

test('the process has nothing of the environment but the compile cache', async t => {
  process.env.OARLOCK_TEST_SECRET = 'a secret'
  t.after(() => delete process.env.OARLOCK_TEST_SECRET)
  const names = (await open(t).request('env')).split(',')
  deepEqual(
    names.filter(name => !['', 'NODE_COMPILE_CACHE'].includes(name)),
    [],
  )
})
