import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { dependencyStatus } from './dependency-status.ts'

for (const [how, source] of [
  ['Found', 'Cached'],
  ['Waited', 'Waited'],
  ['Installed', 'Installed'],
] as const) {
  test(`dependencies that were ${how} are reported as ${source}`, () => {
    const facts = { digest: 'a'.repeat(64), manager: 'npm', seconds: 0.2, installSeconds: 31.5, bytes: 4096 }
    deepEqual(dependencyStatus({ ...facts, how }), { ...facts, source })
  })
}
