/** Limits and isolation of a Run, as its worker enforces and reports them. */
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { RunPolicy } from '../src/api/index.ts'
import { findRunProcesses, privateNetworkProblem, probeIsolation } from '../src/execution/workspace/index.ts'
import { eventually } from './support/eventually.ts'
import { createWorkerHarness, shell } from './support/worker-harness.ts'

const harness = createWorkerHarness()
const { directory, runsDir, startWorker, execute, getWorker, readLog, readState, newPath } = harness
const sandbox = await probeIsolation('Sandbox')
const networkProblem = sandbox.available ? privateNetworkProblem(sandbox.sandbox?.slirp4netns) : sandbox.reason
const needsSandbox = { skip: networkProblem ?? false }

test('the status reports the limits in force and the resources used', async t => {
  const { run } = await execute(t, {
    stack: {
      resources: { cpu: '500m', memory: '256Mi', pids: 50, disk: '64Mi' },
      command: { apply: shell('i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done') },
    },
  })
  const { status } = run
  equal(status?.phase, 'Succeeded', JSON.stringify(status))
  const { level, limits } = status?.isolation ?? {}
  equal(level, 'Process')
  deepEqual(Object.keys(limits ?? {}).sort(), ['cpu', 'disk', 'memory', 'pids'])
  equal(limits?.disk, 'Watched')
  ok((status?.usage?.cpuSeconds ?? 0) > 0, JSON.stringify(status?.usage))
})

test('a Run that exceeds its memory limit ends as OutOfMemory, with peak, limit and remedy, and its state is saved', async t => {
  const apply = shell(`echo '{"half":1}' > $OARLOCK_STATE; head -c 400000000 /dev/zero | tail; sleep 20`)
  const [fixed, raised] = await Promise.all([
    execute(t, { stack: { resources: { memory: '48Mi' }, command: { apply } } }),
    execute(t, { stack: { resources: { memory: '48Mi', autoRaise: { memory: '1Gi' } }, command: { apply } } }),
  ])
  equal(fixed.run.status?.reason, 'OutOfMemory', JSON.stringify(fixed.run.status))
  match(
    fixed.run.status?.message ?? '',
    /peak \d+Mi, limit 48Mi; raise spec\.resources\.memory to \d+Mi or more, or set spec\.resources\.autoRaise/,
  )
  equal(fixed.run.status?.retryable, false)
  match(await readState(fixed.run), /half/)
  equal(raised.run.status?.retryable, true)
  match(raised.run.status?.message ?? '', /the next Run gets 96Mi/)
  deepEqual(findRunProcesses(fixed.run.metadata.uid), [])
})

test('a sandboxed Run has inputs, outputs and state, and sees neither the worker nor other Runs', needsSandbox, async t => {
  const spy = `ls ${runsDir} ${directory}; cat /proc/${process.pid}/environ; kill -9 ${process.pid}; ln -s ${join(directory, 'server')} $TMPDIR/out; true`
  const apply = `echo '{"url":"http://x"}' > $OARLOCK_OUTPUTS; echo '{"made":1}' > $OARLOCK_STATE; ${spy}`
  const { run } = await execute(t, { stack: { isolation: { level: 'Sandbox' }, command: { apply: shell(apply) } } })
  equal(run.status?.phase, 'Succeeded', JSON.stringify(run.status))
  deepEqual(run.status?.outputs, { url: 'http://x' })
  deepEqual([run.status?.isolation?.level, run.status?.isolation?.network], ['Sandbox', 'Private'])
  equal(await readState(run), '{"made":1}')
  const log = await readLog(run)
  match(log, /No such file/)
  ok(!log.includes('server'), log)
})

test(
  'a Run that exceeds its disk limit may save its state, and is killed if it ignores the interrupt and writes on',
  needsSandbox,
  async t => {
    const write = 'i=0; while [ $i -lt 200 ]; do head -c 4000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done; echo wrote all'
    const stack = (trap: string) => ({
      isolation: { level: 'Sandbox' } as const,
      resources: { disk: '32Mi' },
      command: { apply: shell(`trap '${trap}' INT TERM; ${write}`) },
    })
    const [saves, ignores] = await Promise.all([
      execute(t, { stack: stack('echo "{\\"saved\\":1}" > $OARLOCK_STATE; exit 1') }),
      execute(t, { stack: stack('') }),
    ])
    for (const { run } of [saves, ignores]) {
      deepEqual([run.status?.phase, run.status?.reason], ['Failed', 'DiskLimit'], JSON.stringify(run.status))
      match(
        run.status?.message ?? '',
        /^used \d+Mi of disk, at most 32Mi are allowed \(spec\.resources\.disk\); raise the limit or write less$/,
      )
      ok(!(await readLog(run)).includes('wrote all'))
    }
    equal(await readState(saves.run), '{"saved":1}')
  },
)

for (const { level, skip } of [
  { level: 'Process', skip: false },
  { level: 'Sandbox', skip: needsSandbox.skip },
] as const)
  test(`a Run at level ${level} that exceeds its disk limit, ignores the interrupt and exits with 0 has failed`, { skip }, async t => {
    // Below the size from which it is killed.
    const write = 'for i in 1 2 3; do head -c 16000000 /dev/zero > f$i; done'
    const untilInterrupted = `trap 'echo > interrupted' INT; ${write}; while [ ! -e interrupted ]; do sleep 0.1; done`
    const save = `echo '{"saved":1}' > $OARLOCK_STATE; echo '{"url":"http://x"}' > $OARLOCK_OUTPUTS; echo exits with 0; exit 0`
    const { run } = await execute(t, {
      stack: { isolation: { level }, resources: { disk: '32Mi' }, command: { apply: shell(`${untilInterrupted}; ${save}`) } },
    })
    match(await readLog(run), /exits with 0/)
    deepEqual([run.status?.phase, run.status?.reason, run.status?.outputs], ['Failed', 'DiskLimit', undefined], JSON.stringify(run.status))
    match(run.status?.message ?? '', /^used \d+Mi of disk, at most 32Mi are allowed/)
    match(await readState(run), /saved/)
  })

test('a Run whose disk usage cannot be measured ends as DiskLimit, with the reason', needsSandbox, async t => {
  const apply = shell(`i=0; while [ $i -lt 300 ]; do mkdir d; cd d; i=$((i+1)); done; sleep 20`)
  const { run } = await execute(t, { stack: { isolation: { level: 'Sandbox' }, resources: { disk: '64Mi' }, command: { apply } } })
  equal(run.status?.reason, 'DiskLimit', JSON.stringify(run.status))
  match(
    run.status?.message ?? '',
    /^the disk usage cannot be measured, which counts as more than 64Mi \(spec\.resources\.disk\): its directories are nested more than 256 levels deep, as in "d\/d\/d\/d"; nest them less$/,
  )
})

test('a symlink at the path of the state file is not followed', needsSandbox, async t => {
  const secret = join(directory, 'only-for-the-worker.json')
  writeFileSync(secret, '{"token":"of-the-worker"}')
  const apply = shell(`ln -sf ${secret} $OARLOCK_STATE`)
  const { run } = await execute(t, { stack: { isolation: { level: 'Sandbox' }, command: { apply } } })
  equal(run.status?.phase, 'Failed', JSON.stringify(run.status))
  ok(!(await readState(run)).includes('of-the-worker'))
})

test('a sandboxed Run uses the network of the worker only if its pool allows it', needsSandbox, async t => {
  const started = newPath()
  const stack = { isolation: { level: 'Sandbox', network: 'Host' } as const, command: { apply: ['touch', started] } }
  const { run: refused } = await execute(t, { stack })
  equal(refused.status?.reason, 'PolicyViolation', JSON.stringify(refused.status))
  match(refused.status?.message ?? '', /^spec\.isolation\.network: Host is not allowed by this worker \(allowedNetworks: Private, None\)/)
  equal(existsSync(started), false)
  const policy: RunPolicy = { allowedNetworks: ['Host'] }
  const { run: allowed } = await execute(t, { stack: { ...stack, command: { apply: ['true'] } }, policy })
  deepEqual([allowed.status?.phase, allowed.status?.isolation?.network], ['Succeeded', 'Host'], JSON.stringify(allowed.status))
})

test(
  'a Run that a controller of an earlier version assigned, without a policy, has what the pool of its worker requires',
  needsSandbox,
  async t => {
    const policy: RunPolicy = { minimumIsolation: 'Sandbox', allowedNetworks: ['Host'], maxResources: { pids: 50 } }
    const { run } = await execute(t, { stack: { command: { apply: ['true'] } } }, { policy })
    const { level, network, limits } = run.status?.isolation ?? {}
    deepEqual([run.status?.phase, level, network, Object.keys(limits ?? {})], ['Succeeded', 'Sandbox', 'Host', ['pids']])
  },
)

for (const once of [true, false]) {
  test(`a ${once ? 'one-shot' : 'warm'} worker reports its isolation levels`, async t => {
    const { name, drain, done } = startWorker(t, { once })
    const levels = await eventually(async () => (await getWorker(name))?.status?.isolation, 'the isolation levels')
    deepEqual(levels, sandbox.available ? ['Process', 'Sandbox'] : ['Process'])
    drain.abort()
    equal(await done, 0)
  })
}

test('a Stack without an isolation level runs in a sandbox where its Tenant requires one', needsSandbox, async t => {
  const { run } = await execute(t, { stack: { command: { apply: ['true'] } }, policy: { minimumIsolation: 'Sandbox' } })
  deepEqual(
    [run.status?.phase, run.status?.isolation?.level, run.status?.isolation?.network],
    ['Succeeded', 'Sandbox', 'Private'],
    JSON.stringify(run.status),
  )
})

test('a limit that the Tenant sets applies to a Stack that sets none', async t => {
  const apply = shell('head -c 400000000 /dev/zero | tail; sleep 20')
  const { run } = await execute(t, { stack: { command: { apply } }, policy: { maxResources: { memory: '48Mi' } } })
  equal(run.status?.reason, 'OutOfMemory', JSON.stringify(run.status))
})

test('rejects an isolation level that the worker lacks, with the reason, instead of using a weaker one', async t => {
  const started = newPath()
  const { run } = await execute(t, { stack: { isolation: { level: 'Pod' }, command: { apply: ['touch', started] } } })
  equal(run.status?.reason, 'IsolationUnavailable')
  match(run.status?.message ?? '', /^spec\.isolation\.level: Pod is not available on this worker: /)
  equal(run.status?.retryable, false)
  equal(existsSync(started), false)
})
