import { test } from 'node:test'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { checkPhaseOfNewRun } from './support/check-phase-of-new-run.ts'

test('a new Run has phase Queued without a write of its status', async () => {
  await using api = await startTestServer()
  await checkPhaseOfNewRun(api.client)
})
