import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Stack } from '../../api/index.ts'
import { withRaisedMemory } from './raised-memory.ts'

const stack = (resources: object | undefined, generation = 1) =>
  ({ metadata: { name: 's', generation }, spec: { engine: 'command', source: {}, resources } }) as unknown as Stack
const run = (memory: string | undefined, reason: string, of: Stack, generation = 1) =>
  ({
    spec: { stackRef: { generation }, stack: { ...of.spec, resources: { ...of.spec.resources, memory } } },
    status: { phase: 'Failed', reason },
  }) as unknown as Run

test('doubles the memory after OutOfMemory, up to autoRaise, and keeps it until the spec changes', () => {
  const raising = stack({ memory: '256Mi', pids: 9, autoRaise: { memory: '640Mi' } })
  const memory = (runs: Run[], of = raising) => withRaisedMemory(of, runs).resources?.memory
  assert.equal(memory([]), '256Mi')
  assert.equal(memory([run('256Mi', 'OutOfMemory', raising)]), '512Mi')
  assert.equal(withRaisedMemory(raising, [run('256Mi', 'OutOfMemory', raising)]).resources?.pids, 9)
  assert.equal(memory([run('512Mi', 'OutOfMemory', raising)]), '640Mi')
  assert.equal(memory([run('640Mi', 'OutOfMemory', raising)]), '640Mi')
  assert.equal(memory([run('512Mi', 'ApplyFailed', raising)]), '512Mi', 'another failure keeps the raised memory')
  assert.equal(memory([run('512Mi', 'OutOfMemory', raising)], stack({ memory: '300Mi', autoRaise: { memory: '1Gi' } }, 2)), '300Mi')
  const limited = run('256Mi', 'OutOfMemory', raising)
  limited.spec.policy = { maxResources: { memory: '300Mi' } }
  assert.equal(memory([limited]), '300Mi', 'up to what the Tenant and the pool allow')
  const fixed = stack({ memory: '256Mi' })
  assert.equal(memory([run('256Mi', 'OutOfMemory', fixed)], fixed), '256Mi', 'without autoRaise the memory is not raised')
})
