import { deepEqual, equal, throws } from 'node:assert/strict'
import { test } from 'node:test'
import { readTarget } from './request-target.ts'

test('a target is split as partitions split it: nothing is resolved', () => {
  for (const [target, pathname, query] of [
    ['/api/v1/namespaces/a/../b/pods', '/api/v1/namespaces/a/../b/pods', []],
    ['/api/v1/pods?watch=1?x', '/api/v1/pods', [['watch', '1?x']]],
    [
      '/api/v1/namespaces?fieldManager=a#&dryRun=All',
      '/api/v1/namespaces',
      [
        ['fieldManager', 'a#'],
        ['dryRun', 'All'],
      ],
    ],
    ['//partition/progress', '//partition/progress', []],
  ] as const) {
    const { pathname: path, searchParams } = readTarget(target)
    equal(path, pathname)
    deepEqual([...searchParams], query)
  }
})

test('the paths between gateways and partitions do not exist for clients', () => {
  for (const target of ['/partition/progress?version=1', '/partition/rights', '/partition/kubelet?node=a', '/partition/'])
    throws(() => readTarget(target), { message: /this server is a gateway, and serves no/, details: { kind: 'gateways' } })
})

test('a target that is not a path is rejected', () => {
  for (const target of ['https://10.0.0.1/partition/rights', '*', 'partition/rights']) throws(() => readTarget(target), /must be a path/)
})
