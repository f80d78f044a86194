import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { listPendingOperations, type Run } from '../../api/index.ts'
import { epochMs, testRun } from './objects.testing.ts'
import { decideRunCleanup } from './run-cleanup.ts'
import { makeRunRecord } from './run-record.ts'

const creating = listPendingOperations(['aws_instance.a', 'aws_instance.b["x"]'].map(urn => ({ type: 'creating', urn })))!

/** The action for a Run whose worker is lost. */
function actionOf(run: Run) {
  const record = makeRunRecord(run)
  record.lostWith = 'w1'
  const [action] = decideRunCleanup({
    runs: { toCleanUp: () => [record], releasable: () => [], hasSubject: () => true },
    isPending: () => false,
    leaseDurationOf: () => 10_000,
    describeWorker: (name: string) => `worker ${name}`,
    nowMs: epochMs,
  } as unknown as Parameters<typeof decideRunCleanup>[0])
  return action?.kind === 'PatchRunStatus' ? action : undefined
}
const lost = (engine: 'opentofu' | 'pulumi', pendingOperations?: typeof creating) => {
  const run = testRun('r1', { worker: 'w1', phase: 'Applying', stack: { engine } })
  return actionOf({ ...run, status: { ...run.status!, ...(pendingOperations && { pendingOperations }) } })
}
const message = 'worker w1 did not renew its Lease for 10 s and was declared lost'

test('a Lost Run names the resources whose creation was in progress', () => {
  deepEqual(
    lost('opentofu', creating)?.status.message,
    `${message}; 2 creations were in progress, and the resources may exist twice after the next Run: aws_instance.a, aws_instance.b["x"]`,
  )
})

test('a Lost Run without a creation in progress has the loss only', () => {
  deepEqual([lost('opentofu')?.status.message, lost('opentofu')?.interrupted], [message, undefined])
})

test('for engine pulumi the stores are asked', () => {
  deepEqual(lost('pulumi')?.interrupted?.name, 'app')
})
