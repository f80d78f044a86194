import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import type { StackInput } from './decision.ts'
import { lazyDestruction } from './destruction.ts'
import type { StackRecord } from './fold-runs.ts'

test('how the resources are destroyed is evaluated once, when it is first read', () => {
  let reads = 0
  const record: StackRecord = {
    get applied() {
      reads++
      return undefined
    },
  }
  const stack = { metadata: { name: 's', uid: 'u', generation: 2 }, spec: { engine: 'command', source: {} } }
  const input = { stack, revision: 'sha256:1', inputsDigest: '', specErrors: [] } as unknown as StackInput
  const destruction = lazyDestruction(input, [], record)
  equal(reads, 0)
  equal(destruction()?.inputs.revision, 'sha256:1')
  const before = reads
  equal(before > 0, true)
  equal(destruction(), destruction())
  equal(reads, before)
})
