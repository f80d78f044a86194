import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { failedStatus, lostStatus } from './worker-report.ts'

const message = 'Pod p exited with code 137: Error'
const killed = { reason: 'CrashedOnStartup', message } as const
const outOfMemory = { ...killed, crash: { reason: 'WorkerOutOfMemory', message } } as const
const evicted = { ...killed, loss: { reason: 'Evicted', message } } as const

for (const { name, got, want } of [
  { name: 'a worker that is killed before it registers crashed on startup', got: failedStatus(killed, 137), want: 'CrashedOnStartup' },
  { name: 'a worker that is killed after it registered is lost', got: lostStatus(killed, 137), want: 'WorkerLost' },
  {
    name: 'a worker that is OOMKilled after it registered ran out of memory',
    got: lostStatus(outOfMemory, 137),
    want: 'WorkerOutOfMemory',
  },
  { name: 'a worker whose Pod is evicted before it registers is evicted', got: failedStatus(evicted, 137), want: 'Evicted' },
  { name: 'a worker whose Pod is evicted after it registered is evicted', got: lostStatus(evicted, 137), want: 'Evicted' },
])
  test(name, () => equal(got.reason, want))
