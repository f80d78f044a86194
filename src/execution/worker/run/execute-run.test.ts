/** Executes Runs with the command engine; API server, state store, log and supervisor are in memory. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Run, RunPolicy, RunSpec, RunStatus, StackSpec } from '../../../api/index.ts'
import type { Client } from '../../../kubernetes/client/index.ts'
import { StaleEpochError } from '../../../stores/state/index.ts'
import { defaultLeaseTimings } from '../lease/lease-timings.ts'
import { executeRun } from './execute-run.ts'
import type { ExecuteOptions, RunStateClient } from './execution.ts'

const directory = mkdtempSync(join(tmpdir(), 'oarlock-execute-run-'))
after(() => rmSync(directory, { recursive: true, force: true }))

let runCount = 0

/** A Run with the phases that its status had, and the calls of the state store and the supervisor. */
function createExecution({
  stack,
  state: ownState,
  ownPolicy = {},
  stopCause,
  ...spec
}: Partial<Omit<RunSpec, 'stack'>> & {
  stack?: Partial<StackSpec>
  state?: Partial<RunStateClient>
  ownPolicy?: RunPolicy
  stopCause?: ExecuteOptions['stopCause']
}) {
  const name = `network-${++runCount}`
  let run = {
    metadata: { name, namespace: 'apps', uid: `uid-${name}-${process.pid}`, resourceVersion: '1' },
    spec: {
      type: 'Apply',
      stackRef: { name: 'network', uid: `stack-${name}`, generation: 1 },
      epoch: 1,
      stack: { engine: 'command', source: { inline: { files: { a: '' } } }, command: { apply: ['true'] }, ...stack },
      revision: 'sha256:any',
      workerName: 'w1',
      ...spec,
    },
    status: { phase: 'Assigned' },
  } as unknown as Run
  const phases: string[] = []
  const calls: string[] = []
  const logLines: string[] = []
  const written: string[] = []
  const runs = {
    get: async () => run,
    patchStatus: async (_: string, { status }: { status: Partial<RunStatus> }) => {
      const resourceVersion = String(Number(run.metadata.resourceVersion) + 1)
      run = { ...run, metadata: { ...run.metadata, resourceVersion }, status: { ...run.status, ...status } as RunStatus }
      if (status.phase) phases.push(status.phase)
      return run
    },
    getOrUndefined: async () => undefined,
    create: async () => ({}),
  }
  const state = {
    lock: async () => {
      calls.push('lock')
      return {}
    },
    unlock: async () => void calls.push('unlock'),
    read: async () => undefined,
    write: async (bytes: Buffer) => written.push(bytes.toString().trim()),
    get newestVersion() {
      return written.length || undefined
    },
    close: async () => void calls.push('close'),
    readInventory: async () => undefined,
    writeInventory: async () => {},
    putDiff: async () => {},
    putConfiguration: async () => {},
    getInputs: async () => ({ secrets: [], configMaps: [], outputs: [] }),
    putOutputs: async () => {},
    deleteOutputs: async () => {},
  } as unknown as RunStateClient
  Object.assign(state, ownState)
  const supervised = {
    armed: Promise.resolve(),
    started: () => {},
    ended: () => {},
    interrupted: () => void calls.push('interrupted'),
    saved: () => {},
    done: () => void calls.push('done'),
    abandon: async () => void calls.push('abandon'),
  }
  const supervisor = { supervise: () => supervised } as unknown as ExecuteOptions['supervisor']
  const lease = { sinceRenewalMs: 0 }
  const execution = executeRun({
    client: { resource: () => runs } as unknown as Client,
    run,
    workerName: 'w1',
    storeUrl: 'http://127.0.0.1:1',
    caCertificate: undefined,
    storeAgent: new Agent(),
    token: 'worker-token',
    runsDir: join(directory, 'runs'),
    cacheDir: join(directory, 'cache'),
    allowPaths: [],
    sandboxBinds: [],
    engineEnvironment: [],
    policy: ownPolicy,
    times: defaultLeaseTimings,
    sinceRenewalMs: () => lease.sinceRenewalMs,
    supervisor,
    ...(stopCause && { stopCause }),
    log: {
      append: text => void logLines.push(text),
      isFull: false,
      drop: () => {},
      addSecrets: () => {},
      secrets: { maxLength: 0, findAcross: () => undefined },
      mask: text => text,
      close: async () => ({ lines: logLines.length, bytes: 0, truncated: false }),
    },
    state,
  })
  const status = () => run.status as RunStatus
  const runDirectory = join(directory, 'runs', run.metadata.uid)
  return { execution, lease, phases, calls, logLines, written, status, runDirectory, current: () => run }
}

const shell = (script: string): Partial<StackSpec> => ({ command: { apply: ['sh', '-c', script] } })
const untilFile = async (path: string) => {
  while (!existsSync(path)) await new Promise(resolve => setTimeout(resolve, 5))
}
const waits = (started: string) => shell(`touch ${started}; trap 'exit 1' INT; while :; do sleep 0.02; done`)

test('an Apply saves its state, unlocks and removes its directory before it reports the result, which is the only write of a quick Run', async () => {
  const { execution, phases, calls, written, status, runDirectory } = createExecution({
    stack: shell(`echo '{"made":1}' > $OARLOCK_STATE`),
  })
  equal(await execution.done, 'reported')
  deepEqual(phases, ['Succeeded'])
  ok(status().startedAt)
  deepEqual(calls, ['lock', 'unlock', 'done', 'close'])
  deepEqual(written, ['{"made":1}'])
  equal(status().stateVersion, 1)
  ok(status().finishedAt)
  equal(existsSync(runDirectory), false)
})

for (const [what, assignment, ownPolicy] of [
  ['its assignment', { policy: { minimumIsolation: 'Sandbox' } }, {}],
  // As a controller would that has not seen the Tenant, or lies.
  ['its worker', { policy: { minimumIsolation: 'Process' } }, { minimumIsolation: 'Sandbox' }],
  ['its worker, assigned without a policy', {}, { minimumIsolation: 'Sandbox' }],
] as const) {
  test(`a Run below the minimum of ${what} fails before it starts a program or takes the lock`, async () => {
    const started = join(directory, `started-${runCount}`)
    const stack: Partial<StackSpec> = { command: { apply: ['touch', started] }, isolation: { level: 'Process' } }
    const { execution, calls, status } = createExecution({ stack, ...assignment, ownPolicy })
    equal(await execution.done, 'reported')
    deepEqual([status().reason, status().retryable, calls.includes('lock'), existsSync(started)], ['PolicyViolation', true, false, false])
    match(status().message ?? '', /^spec\.isolation\.level: Process is weaker than Sandbox, which .* requires/)
  })
}

test('a Plan takes no lock', async () => {
  const { execution, calls, status } = createExecution({ type: 'Plan' })
  equal(await execution.done, 'reported')
  deepEqual(calls, ['done', 'close'])
  equal(status().phase, 'Succeeded')
})

for (const { spec, message } of [
  { spec: {}, message: 'canceled on request' },
  { spec: { cancelReason: 'StackDeleted' }, message: 'canceled because the Stack is being deleted' },
  { spec: { cancelReason: 'Outdated' }, message: 'canceled because the Stack or its inputs changed' },
])
  test(`a Run that is canceled before it starts takes no lock and reports: ${message}`, async () => {
    const { execution, phases, calls, status } = createExecution({ cancel: true, ...spec })
    equal(await execution.done, 'reported')
    deepEqual(calls, ['close'])
    deepEqual([phases.at(-1), status().message], ['Canceled', message])
  })

test('the supervisor is informed before the engine of a canceled Run is interrupted', async () => {
  const started = join(directory, 'canceled')
  const { execution, calls, logLines, current, status } = createExecution({ stack: waits(started) })
  await untilFile(started)
  execution.observe({ ...current(), spec: { ...current().spec, cancel: true } })
  equal(await execution.done, 'reported')
  deepEqual(calls, ['lock', 'interrupted', 'unlock', 'done', 'close'])
  equal(status().phase, 'Canceled')
  match(logLines.at(-1) ?? '', /^canceled on request/)
})

test('invariant 3: a Run that a newer epoch has superseded is abandoned: no status, no unlock', async () => {
  const rejectWrite = async () => {
    throw new StaleEpochError('epoch 1 is older than 2', undefined)
  }
  const { execution, phases, calls } = createExecution({
    stack: shell(`echo '{"made":1}' > $OARLOCK_STATE; sleep 20`),
    state: { write: rejectWrite },
  })
  equal(await execution.done, 'abandoned')
  deepEqual(calls, ['lock', 'interrupted', 'abandon', 'close'])
  ok(!phases.includes('Failed'), phases.join())
})

test('a Run that was assigned to another worker is abandoned', async () => {
  const started = join(directory, 'reassigned')
  const { execution, calls, current } = createExecution({ stack: waits(started) })
  await untilFile(started)
  execution.observe({ ...current(), spec: { ...current().spec, workerName: 'w2' } })
  equal(await execution.done, 'abandoned')
  deepEqual(calls.slice(-2), ['abandon', 'close'])
})

test('invariant 2: a Run whose Lease is not renewed is interrupted', async () => {
  const started = join(directory, 'not-renewed')
  const { execution, lease, calls, status } = createExecution({ stack: waits(started) })
  await untilFile(started)
  lease.sinceRenewalMs = defaultLeaseTimings.interruptMs
  execution.renewed()
  equal(await execution.done, 'reported')
  deepEqual(calls, ['lock', 'interrupted', 'unlock', 'done', 'close'])
  equal(status().phase, 'Failed')
})

test('invariant 2: a worker that is late leaves SIGINT to its supervisor, and writes nothing after the time of SIGKILL', async () => {
  const started = join(directory, 'not-renewed-late')
  const { execution, lease, phases, calls } = createExecution({ stack: waits(started) })
  await untilFile(started)
  lease.sinceRenewalMs = defaultLeaseTimings.killMs
  execution.renewed()
  equal(await execution.done, 'abandoned')
  deepEqual(calls, ['lock', 'abandon', 'close'])
  deepEqual(phases, [])
})

test('a failed Run whose state could not be saved reports its result and leaves the state to the supervisor', async () => {
  const rejectWrite = async () => {
    throw Object.assign(new Error('the store is down'), { name: 'StateClientError' })
  }
  const { execution, calls, status, runDirectory } = createExecution({
    stack: shell(`echo '{"half":1}' > $OARLOCK_STATE; exit 3`),
    state: { write: rejectWrite },
  })
  equal(await execution.done, 'unsaved')
  equal(status().phase, 'Failed')
  match(status().message ?? '', /saving its state failed too: the store is down/)
  deepEqual(calls, ['lock', 'unlock', 'abandon', 'close'])
  equal(existsSync(runDirectory), true, 'the directory with the state was removed')
})

test('a Run that must not be started takes no lock and executes nothing, and its result has the reason', async () => {
  const detail = 'the supervisor at /cache/supervisor.sock did not respond within 15 s'
  const { execution, phases, calls, status, runDirectory } = createExecution({
    stack: shell('touch started'),
    stopCause: { kind: 'SupervisorLost', detail },
  })
  equal(await execution.done, 'reported')
  const { phase, reason, message, retryable } = status()
  deepEqual([phase, reason, message, retryable], ['Failed', 'SupervisorLost', `not started: ${detail}`, true])
  deepEqual([phases, calls, existsSync(runDirectory)], [['Failed'], ['close'], false])
})
