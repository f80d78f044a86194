/** What a Lost Run lists of the operations that its engine was in. */
import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../kubernetes/controller/index.ts'
import type { DispatchEvent } from '../dispatch-event.ts'
import { ActionExecutor, type ExecuteActionsOptions, type ReadPendingOperations } from './execute-actions.ts'
import { noMetrics } from './metrics.ts'

const subject = { kind: 'Stack', namespace: 'apps', name: 'web', uid: 'uid-1' } as const
const object = { kind: 'Run', namespace: 'apps', name: 'web-1', uid: 'uid-2', resourceVersion: '7' } as const
const status = { phase: 'Lost', reason: 'WorkerLost', message: 'worker w1 was declared lost', finishedAt: '2026-11-01T00:00:00Z' } as const
const operations = [{ type: 'creating', urn: 'urn:pulumi:dev::shop::aws:s3/bucket:Bucket::logs' }]

/** The status that is written. */
async function write(readPendingOperations: ReadPendingOperations | undefined) {
  const patches: unknown[] = []
  const observed: DispatchEvent[] = []
  const resource = () => ({ patchStatus: async (_: string, patch: { status: object }) => void patches.push(patch.status) })
  const executor = new ActionExecutor({
    ...({ manager: { leaderClient: { resource } }, poolDrivers: {}, events: {} } as unknown as ExecuteActionsOptions),
    ...{ metrics: noMetrics, readPendingOperations, pendingTimeoutMs: 20, log: silentLog, observe: event => void observed.push(event) },
  })
  executor.execute({ kind: 'PatchRunStatus', object, status, interrupted: subject })
  await executor.settled()
  deepEqual(observed, [{ kind: 'WriteSettled', object, outcome: 'Written' }])
  return patches
}

test('a Run is Lost with the operations that the stores name, also in its message', async () => {
  const asked: string[] = []
  const patches = await write(async ({ uid }) => {
    asked.push(uid)
    return { count: 1, operations }
  })
  const message = `${status.message}; 1 operation was interrupted, and its result is unknown: creating aws:s3/bucket:Bucket logs`
  deepEqual([asked, patches], [['uid-1'], [{ ...status, message, pendingOperations: { count: 1, operations } }]])
})

test('a Run without such operations, or whose stores reject the request, is Lost without a list', async () => {
  deepEqual(await write(async () => undefined), [status])
  deepEqual(await write(() => Promise.reject(new Error('the stores are stopped'))), [status])
  deepEqual(await write(undefined), [status])
})

test('stores that do not answer do not keep a Run from being Lost', async () => {
  deepEqual(await write(() => new Promise(() => {})), [status])
})
