import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { Simulator } from './simulator.testing.ts'

const dependencies = (name: string) =>
  ({ digest: name.repeat(64), manager: 'npm', source: 'Installed', seconds: 9, installSeconds: 9, bytes: 1 }) as const

test('a new Run has the digest of the dependencies that the last Run with dependencies has reported', () => {
  const simulator = new Simulator()
  const next = (revision: string) => {
    simulator.setRevision('app', revision)
    simulator.advance(60_000)
    return simulator.activeRun('app')?.spec
  }
  simulator.put('app', { source: { git: { url: 'https://example.com/a' } } })
  equal(simulator.activeRun('app')?.spec.dependencyDigest, undefined)
  simulator.report('app', 'Succeeded', { dependencies: dependencies('a') })
  equal(next('r2')?.dependencyDigest, 'a'.repeat(64))
  simulator.report('app', 'Succeeded', { dependencies: dependencies('b') })
  equal(next('r3')?.dependencyDigest, 'b'.repeat(64))
  // It ended before it had its dependencies.
  simulator.report('app', 'Canceled', { reason: 'Canceled' })
  equal(next('r4')?.dependencyDigest, 'b'.repeat(64))
})
