import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { ProgressState } from './progress-state.ts'
import { ResourceProgress } from './resource-progress.ts'

function follow(...lines: string[]): ProgressState[] {
  const progress = new ResourceProgress()
  lines.forEach((line, index) => void progress.add(line, index, 1_000 * index))
  return [...progress.items.values()]
}

test('resources of OpenTofu and Terraform are planned, run, and are done or have failed', () => {
  deepEqual(
    follow(
      'aws_vpc.main: Plan to create',
      'module.a["x: y"].aws_subnet.b: Plan to replace',
      'Plan: 2 to add, 0 to change, 1 to destroy.',
      'aws_vpc.main: Creating...',
      'aws_vpc.main: Still creating... [10s elapsed]',
      'aws_vpc.main: Creation complete after 1m10s [id=vpc-1]',
      'module.a["x: y"].aws_subnet.b: Destroying... [id=b]',
      'aws_eip.c: Creating...',
      'aws_eip.c: Creation errored after 2s',
    ),
    [
      { name: 'aws_vpc.main', action: 'create', state: 'done', durationMs: 70_000, line: 5, startedMs: 3_000 },
      { name: 'module.a["x: y"].aws_subnet.b', action: 'replace', state: 'running', line: 6, startedMs: 6_000 },
      { name: 'aws_eip.c', action: 'create', state: 'failed', durationMs: 2_000, line: 8, startedMs: 7_000 },
    ],
  )
})

test('resources of Pulumi and of manifests are followed too', () => {
  deepEqual(
    follow(
      ' +  command:local:Command first creating (0s) ',
      ' +  command:local:Command first created (0.05s) ',
      ' ~  random:index:RandomId id updating (0s) ',
      ' +  aws:s3:Bucket logs **creating failed** error: denied',
      'applied ConfigMap platform/flag',
    ).map(({ name, action, state, durationMs }) => [name, action, state, durationMs]),
    [
      ['command:local:Command first', 'create', 'done', 50],
      ['random:index:RandomId id', 'update', 'running', undefined],
      ['aws:s3:Bucket logs', 'create', 'failed', undefined],
      ['ConfigMap platform/flag', 'update', 'done', undefined],
    ],
  )
})

test('other lines are no resources', () => {
  deepEqual(follow('Planning', 'Error: Creating the bucket failed', 'Run a-1: Apply of Stack a/b', '+ output url'), [])
})
