import { deepEqual, rejects } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../../api/index.ts'
import type { Detection } from '../../engine/index.ts'
import { findEngine } from './find-engine.ts'

const runOf = (engineVersion?: string) =>
  ({ spec: { stack: { engine: 'opentofu', ...(engineVersion && { placement: { engineVersion } }) } } }) as unknown as Run
const installed: Detection = { found: true, version: '1.8.0', path: '/usr/bin/tofu' }
const missing: Detection = { found: false, reasons: ['tofu is not on the PATH'], howToInstall: 'install OpenTofu' }

async function find(engineVersion: string | undefined, detection: Detection) {
  const reported: unknown[] = []
  const detections: unknown[] = []
  const engine = {
    detect: async (_env: unknown, options?: { isFresh?: boolean }) => {
      detections.push(options?.isFresh)
      return detection
    },
  }
  const onEngine = (name: string, version: string | undefined) => reported.push([name, version])
  const finding = findEngine(runOf(engineVersion), engine, { workerName: 'w1', onEngine })
  return { finding, reported, detections }
}

test('any installed version does for a Stack without a version constraint; a cached detection suffices', async () => {
  const { finding, reported, detections } = await find(undefined, installed)
  await finding
  deepEqual([reported, detections], [[['opentofu', '1.8.0']], [false]])
})

test('an engine is detected again for a Stack with a version constraint', async () => {
  const { finding, detections } = await find('~> 1.8', installed)
  await finding
  deepEqual(detections, [true])
})

test('rejects an engine that is not installed: no retry on this worker will find it', async () => {
  const { finding, reported } = await find(undefined, missing)
  await rejects(finding, {
    reason: 'EngineNotFound',
    retryable: false,
    message: 'engine opentofu was not found on worker w1: tofu is not on the PATH; install OpenTofu',
  })
  deepEqual(reported, [['opentofu', undefined]])
})

test('rejects a version outside the constraint: another worker may have it', async () => {
  const { finding } = await find('~> 1.9', installed)
  await rejects(finding, {
    reason: 'EngineVersionMismatch',
    retryable: true,
    message: '/usr/bin/tofu on worker w1 is opentofu 1.8.0, spec.placement.engineVersion requires ~> 1.9',
  })
})
