import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import type { Stack } from '../../api/index.ts'
import { registerStackMetrics } from './stack-metrics.ts'

type Condition = readonly [type: string, status: 'True' | 'False', reason: string, at: string]
type TestStack = Pick<Stack, 'metadata' | 'status'>

const stack = (namespace: string, conditions: readonly Condition[], appliedAt?: string): TestStack =>
  ({
    metadata: { name: 'app', namespace },
    status: {
      conditions: conditions.map(([type, status, reason, at]) => ({ type, status, reason, message: '', lastTransitionTime: at })),
      ...(appliedAt !== undefined && { applied: { generation: 1, revision: 'r', inputsDigest: 'd', at: appliedAt, runName: 'app-1' } }),
    },
  }) as TestStack

async function samples(stacks: readonly TestStack[]): Promise<string[]> {
  const registry = new Registry()
  registerStackMetrics(registry, () => stacks)
  const lines = (await registry.metrics()).split('\n').filter(line => line.startsWith('oarlock_'))
  return lines.map(line => line.replace('oarlock_', ''))
}

test('counts Stacks by condition, status and reason, and reports since when the longest has had it and the newest apply', async () => {
  const time = (seconds: number) => new Date(seconds * 1_000).toISOString()
  const ready: Condition = ['Ready', 'True', 'Applied', time(100)]
  const awaiting = (at: number): Condition => ['AwaitingApproval', 'True', 'AwaitingApproval', time(at)]
  const actual = await samples([
    stack('a', [ready, awaiting(300)], time(90)),
    stack('a', [ready, awaiting(200)], time(80)),
    stack('b', [['Stalled', 'True', 'StateMissing', time(400)]]),
  ])
  deepEqual(actual, [
    'stacks{namespace="a"} 2',
    'stacks{namespace="b"} 1',
    'stack_conditions{namespace="a",condition="Ready",status="True",reason="Applied"} 2',
    'stack_conditions{namespace="a",condition="AwaitingApproval",status="True",reason="AwaitingApproval"} 2',
    'stack_conditions{namespace="b",condition="Stalled",status="True",reason="StateMissing"} 1',
    'stack_condition_oldest_timestamp_seconds{namespace="a",condition="Ready",status="True",reason="Applied"} 100',
    'stack_condition_oldest_timestamp_seconds{namespace="a",condition="AwaitingApproval",status="True",reason="AwaitingApproval"} 200',
    'stack_condition_oldest_timestamp_seconds{namespace="b",condition="Stalled",status="True",reason="StateMissing"} 400',
    'stack_last_apply_timestamp_seconds{namespace="a"} 90',
  ])
})

test('bounds the series of namespaces (invariant 10)', async () => {
  const all = Array.from({ length: 300 }, (_, index) => stack(`ns-${index}`, []))
  const actual = await samples(all)
  deepEqual([actual.length, actual.at(-1)], [201, 'stacks{namespace="other"} 100'])
})
