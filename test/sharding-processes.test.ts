import { ok } from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../src/kubernetes/testing/index.ts'
import { ShardedProcesses } from './support/sharded-processes.ts'

test('invariant 7: of 3 real processes one is killed, one stopped and continued, one cut off, and one restarted: no key has two owners, and all are taken over', async context => {
  await using api = await startTestServer()
  const processes = await ShardedProcesses.start(api.client, api.kubeconfigPath, 60)
  try {
    const { lines, longestIdleMs } = await processes.surviveFaults()
    ok(lines > 1_000, `${lines} calls`)
    context.diagnostic(`${lines} calls, a key was idle for ${Math.round(longestIdleMs)} ms at most`)
  } finally {
    await processes.close()
  }
})
