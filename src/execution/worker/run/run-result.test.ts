import { deepEqual, equal } from 'node:assert/strict'
import { test } from 'node:test'
import { usageStatus } from './run-result.ts'

test('a Run reports what was measured of its programs, and nothing where nothing was', () => {
  const used = { cpuSeconds: 0.1234, peakMemoryBytes: 4_096, peakPids: 1, peakDiskBytes: 0 }
  deepEqual(usageStatus(used), { cpuSeconds: 0.123, peakMemoryBytes: 4_096, peakPids: 1 })
  equal(usageStatus({ ...used, cpuSeconds: 0, peakMemoryBytes: 0, peakPids: 0 }), undefined)
  deepEqual(usageStatus({ ...used, peakMemoryBytes: 0, peakPids: 0 }), { cpuSeconds: 0.123, peakMemoryBytes: 0, peakPids: 0 })
})
