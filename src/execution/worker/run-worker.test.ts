/** The loop of a worker against a real API server in this process; heartbeat, supervisor and executions are replaced. */
import { deepEqual, equal, match } from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { eventually } from '../../../test/support/eventually.ts'
import { oarlockResources, type Run, runResource, workerResource } from '../../api/index.ts'
import { type Client, namespaceResource } from '../../kubernetes/client/index.ts'
import { StatusError } from '../../kubernetes/object/index.ts'
import { startTestServer, type TestServer } from '../../kubernetes/testing/index.ts'
import { RegistrationError } from './lease/registration.ts'
import type { ExecuteResult } from './run/execution.ts'
import { runWorker } from './run-worker.ts'
import { defaultParts, type RunWorkerOptions, type WorkerParts } from './run-worker-options.ts'
import { bootMs, SupervisorUnavailableError } from './supervisor/index.ts'

let api: TestServer
let client: Client
before(async () => {
  api = await startTestServer({ kinds: oarlockResources })
  client = api.client
  await client.resource(namespaceResource).apply({ metadata: { name: 'apps' } }, { force: true })
})
after(() => api?.close())

let workerCount = 0

function start(t: TestContext, options: Partial<RunWorkerOptions> = {}, registrationError?: Error, supervisorError?: Error) {
  const name = `w-${++workerCount}`
  const drain = new AbortController()
  const calls: string[] = []
  const ends = new Map<string, PromiseWithResolvers<ExecuteResult>>()
  const hooks: { onLeaseLost?(): void; onSupervisorLost?(): void; reporting?: Promise<void> } = {}
  const lease = { renewedAtMs: bootMs() }
  const ready = supervisorError ? Promise.reject(supervisorError) : Promise.resolve()
  ready.catch(() => {})
  const parts: WorkerParts = {
    createSupervisor: ({ onLost }) => {
      hooks.onSupervisorLost = onLost
      const worker = { id: name, pid: process.pid, startTime: '' }
      const ignore = () => {}
      return {
        ...{ worker, ready, pid: 1, renewed: ignore, renewCredential: ignore, close: ignore },
        supervise: () => {
          throw new Error('no execution is real in this test')
        },
      }
    },
    createHeartbeat: ({ onLeaseLost }) => {
      hooks.onLeaseLost = onLeaseLost
      return {
        get renewedAtMs() {
          return lease.renewedAtMs
        },
        start: async () => {
          if (registrationError) throw registrationError
          lease.renewedAtMs = bootMs()
        },
        isStatusInLease: false,
        reportStatus: async ({ phase, reason }) => {
          calls.push([`status ${phase}`, reason].filter(Boolean).join(' '))
          await hooks.reporting
        },
        useSupervisor: () => {},
        stopRenewing: async () => void calls.push('stop renewing'),
        deregister: async ({ keepsWorker = false } = {}) => void calls.push(keepsWorker ? 'deregister, keeps the Worker' : 'deregister'),
      }
    },
    executeRun: async ({ run, stopCause }) => {
      if (stopCause?.kind === 'SupervisorLost') calls.push(`${run.metadata.name} is not started: ${stopCause.detail}`)
      const { promise, resolve, reject } = Promise.withResolvers<ExecuteResult>()
      ends.set(run.metadata.name, { promise, resolve, reject })
      calls.push(`start ${run.metadata.name}`)
      const stop = (cause: { kind: string }) => {
        calls.push(`stop ${run.metadata.name} ${cause.kind}`)
        resolve(cause.kind === 'OwnershipLost' ? 'abandoned' : 'reported')
      }
      return { done: promise, observe: () => {}, stop, renewed: () => {} }
    },
    rejectRun: defaultParts.rejectRun,
  }
  const log = () => {}
  const done = runWorker(
    {
      ...{ name, client, pool: 'default', once: false, storeUrl: 'http://127.0.0.1:1', caCertificate: undefined, token: 'token' },
      storeCaCertificate: undefined,
      ...{ runsDir: '/nonexistent', cacheDir: '/nonexistent', allowPaths: [], log: { info: log, warn: log }, signal: drain.signal },
      capabilities: { labels: {}, engines: {}, capacity: undefined, isolation: ['Process'] },
      openLog: () => {
        const secrets = { maxLength: 0, findAcross: () => undefined }
        return { append: log, addSecrets: log, isFull: false, drop: log, secrets, mask: text => text, close: async () => undefined }
      },
      ...options,
    },
    parts,
  )
  done.catch(() => {})
  t.after(() => drain.abort())
  const assign = async (runName: string): Promise<Run> =>
    await client.resource(runResource).create({
      metadata: { name: runName, namespace: 'apps' },
      spec: {
        ...{ type: 'Apply', epoch: 1, revision: 'any', inputsDigest: 'any', reason: 'NewGeneration', pool: 'default', priority: 0 },
        stackRef: { name: runName, uid: runName, generation: 1 },
        stack: { engine: 'command', source: { inline: { files: { a: '' } } } },
        workerName: name,
      },
    })
  const untilCalled = (call: string) => eventually(() => calls.includes(call), call)
  const end = (runName: string, result: ExecuteResult = 'reported') => ends.get(runName)?.resolve(result)
  return { name, drain, calls, hooks, lease, done, assign, untilCalled, end, ends }
}

test('a one-shot worker starts its Run, exits with 0 after it, and deregisters last', async t => {
  const { calls, done, assign, untilCalled, end } = start(t, { once: true })
  await assign('one-shot')
  await untilCalled('start one-shot')
  end('one-shot')
  deepEqual(await done, { exitCode: 0 })
  equal(calls.at(-1), 'deregister')
})

test('a one-shot worker that has ended its Run is not reported as Ready', async t => {
  const { calls, hooks, done, assign, untilCalled, end } = start(t, { once: true })
  const { promise, resolve } = Promise.withResolvers<void>()
  hooks.reporting = promise
  await assign('once-1')
  await untilCalled('start once-1')
  for (const rejected of ['once-2', 'once-3']) {
    await assign(rejected)
    const isLost = async () => (await client.resource(runResource).get(rejected, { namespace: 'apps' })).status?.phase === 'Lost'
    await eventually(isLost, 'the end of the rejected Run')
  }
  // The report of the second rejection waits for that of the first one.
  end('once-1')
  resolve()
  deepEqual(await done, { exitCode: 0 })
  deepEqual(
    calls.filter(call => call.startsWith('status')),
    ['status Busy', 'status Draining RunLimitReached'],
  )
})

test('a one-shot worker that the controller deregisters leaves its Worker after its Run, and in no other case', async t => {
  const left = start(t, { once: true, isDeregisteredByController: true })
  await left.assign('left')
  await left.untilCalled('start left')
  left.end('left')
  deepEqual(await left.done, { exitCode: 0 })
  equal(left.calls.at(-1), 'stop renewing')

  const idle = start(t, { once: true, isDeregisteredByController: true, idleTimeoutMs: 1 })
  deepEqual(await idle.done, { exitCode: 0 })
  equal(idle.calls.at(-1), 'deregister')

  const fenced = start(t, { once: true, isDeregisteredByController: true })
  await fenced.assign('abandoned')
  await fenced.untilCalled('start abandoned')
  fenced.end('abandoned', 'abandoned')
  await fenced.done
  equal(fenced.calls.at(-1), 'deregister, keeps the Worker')
})

test('a warm worker rejects a Run while its slot is used, reports what it executes, and starts the next one', async t => {
  const { name, calls, drain, done, assign, untilCalled, end } = start(t)
  await client.resource(workerResource).create({ metadata: { name }, spec: { pool: 'default', slots: 1, lifecycle: 'Warm' } })
  await assign('warm-1')
  await untilCalled('start warm-1')
  await assign('warm-2')
  await untilCalled('status Busy')
  const runs = client.resource(runResource)
  const isLost = async () => (await runs.get('warm-2', { namespace: 'apps' })).status?.phase === 'Lost'
  await eventually(isLost, 'the end of the rejected Run')
  const { reason, message, finishedAt, startedAt } = (await runs.get('warm-2', { namespace: 'apps' })).status ?? {}
  deepEqual([reason, startedAt], ['WorkerBusy', undefined])
  match(message ?? '', /^worker w-\d+ had no free slot of 1: nothing was executed, and another Run follows immediately$/)
  equal(typeof finishedAt, 'string')
  end('warm-1')
  await untilCalled('status Ready')
  await assign('warm-3')
  await untilCalled('start warm-3')
  drain.abort()
  await untilCalled('status Draining Signal')
  end('warm-3')
  deepEqual(await done, { exitCode: 0 })
  equal(calls.includes('start warm-2'), false)
})

test('invariant 8: the end of the grace period interrupts the Run of a draining worker', async t => {
  const { drain, done, assign, untilCalled } = start(t, { drainGraceMs: 20 })
  await assign('drained')
  await untilCalled('start drained')
  drain.abort()
  await untilCalled('stop drained WorkerDrained')
  deepEqual(await done, { exitCode: 0 })
})

test('a worker of a pool host that fails before its first Run leaves its Worker to the host; any other one deletes it', async t => {
  const ofHost = { workerUid: 'requested' }
  for (const [options, runs, last] of [
    [ofHost, 0, 'deregister, keeps the Worker'],
    [{ ...ofHost, once: true }, 0, 'deregister, keeps the Worker'],
    [ofHost, 1, 'deregister'],
    [{ ...ofHost, podUid: 'pod' }, 0, 'deregister'],
    [{}, 0, 'deregister'],
  ] as const) {
    const { name, calls, hooks, done, assign, untilCalled, end } = start(t, options)
    if (runs > 0) {
      await assign(`${name}-run`)
      await untilCalled(`start ${name}-run`)
      end(`${name}-run`)
    }
    hooks.onSupervisorLost?.()
    deepEqual(await done, { exitCode: 3 })
    equal(calls.at(-1), last, JSON.stringify(options))
    equal(calls.includes('status Draining Fenced'), last !== 'deregister')
  }
  const stopped = start(t, ofHost)
  stopped.drain.abort()
  deepEqual(await stopped.done, { exitCode: 0 })
  equal(stopped.calls.at(-1), 'deregister')
})

test('a deleted Run is stopped, and a worker with an abandoned Run drains and exits as fenced', async t => {
  const { calls, done, assign, untilCalled } = start(t)
  await assign('deleted')
  await untilCalled('start deleted')
  await client.resource(runResource).delete('deleted', { namespace: 'apps' })
  deepEqual(await done, { exitCode: 3 })
  equal(calls.includes('stop deleted OwnershipLost'), true)
  equal(calls.includes('status Draining Fenced'), true)
  equal(calls.at(-1), 'deregister, keeps the Worker')
})

for (const [name, lose, cause] of [
  ['its Lease was deleted', hooks => hooks.onLeaseLost?.(), 'OwnershipLost'],
  ['no supervisor can be kept running', hooks => hooks.onSupervisorLost?.(), 'SupervisorLost'],
] as [string, (hooks: ReturnType<typeof start>['hooks']) => void, string][]) {
  test(`invariant 2: a worker stops its Runs and exits as fenced if ${name}`, async t => {
    const { hooks, done, assign, untilCalled } = start(t)
    const run = `fenced-${cause.toLowerCase()}`
    await assign(run)
    await untilCalled(`start ${run}`)
    lose(hooks)
    await untilCalled(`stop ${run} ${cause}`)
    deepEqual(await done, { exitCode: 3 })
  })
}

test('invariant 2: an idle worker whose Lease has expired exits as fenced', async t => {
  const { lease, done } = start(t, { lease: { durationMs: 300, renewMs: 50, interruptMs: 100, terminateMs: 150, killMs: 200 } })
  lease.renewedAtMs = bootMs() - 400
  deepEqual(await done, { exitCode: 3 })
})

test('without a supervisor a worker reports its Run, which is not started, and ends with the address and the time that it waited', async t => {
  const error = new SupervisorUnavailableError({ address: '/cache/supervisor/supervisor.sock', waitedMs: 15_012 })
  const { calls, done, assign, untilCalled, end } = start(t, {}, undefined, error)
  await assign('unsupervised')
  await untilCalled('start unsupervised')
  const message = /^the supervisor at \/cache\/supervisor\/supervisor\.sock did not respond within 15 s; check the load/
  match(calls.find(call => call.startsWith('unsupervised is not started'))?.slice('unsupervised is not started: '.length) ?? '', message)
  end('unsupervised')
  const thrown: SupervisorUnavailableError = await done.then(
    () => undefined,
    reason => reason,
  )
  deepEqual([thrown.name, thrown.address, thrown.waitedMs], [error.name, error.address, 15_012])
  equal(calls.at(-1), 'deregister')
})

test('a crash of an execution interrupts the other Runs, and is thrown after they have ended', async t => {
  const { done, assign, untilCalled, ends } = start(t, { slots: 2 })
  for (const run of ['crash-1', 'crash-2']) {
    await assign(run)
    await untilCalled(`start ${run}`)
  }
  ends.get('crash-1')?.reject(new Error('a bug'))
  await untilCalled('stop crash-2 WorkerDrained')
  match(String(await done.catch(error => error)), /a bug/)
})

test('a drain that its object requests can be canceled while a Run is running', async t => {
  const { name, drain, done, assign, untilCalled, end, calls } = start(t)
  await client.resource(workerResource).create({ metadata: { name }, spec: { pool: 'default', slots: 1, lifecycle: 'Warm' } })
  await assign('canceled-drain')
  await untilCalled('start canceled-drain')
  for (const [isDraining, status] of [
    [true, 'status Draining DrainRequested'],
    [false, 'status Busy'],
  ] as const) {
    calls.length = 0
    await client.resource(workerResource).patch(name, { spec: { drain: isDraining } }, { type: 'merge' })
    await untilCalled(status)
  }
  end('canceled-drain')
  await untilCalled('status Ready')
  drain.abort()
  deepEqual(await done, { exitCode: 0 })
})

for (const [reason, exitCode] of [
  ['Forbidden', 5],
  ['AlreadyExists', 4],
] as const) {
  test(`a worker whose registration is rejected as ${reason} exits with ${exitCode}`, async t => {
    const cause = new StatusError(reason, 'rejected')
    const { done } = start(t, {}, new RegistrationError('failed to register', { cause }))
    deepEqual(await done, { exitCode })
  })
}
