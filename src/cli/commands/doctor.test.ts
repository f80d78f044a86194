import { deepEqual } from 'node:assert/strict'
import { test } from 'node:test'
import type { CliEnvironment } from '../access.ts'
import { checkedBy } from './doctor.ts'

const environment = (env: Record<string, string> = {}, exists = false): CliEnvironment => ({
  ...{ env, cwd: '/somewhere', checkout: undefined },
  exists: () => exists,
})

for (const [where, options, isInPod, present, want] of [
  ['on a machine', {}, false, environment(), ['Machine']],
  ['with --kubeconfig', { kubeconfig: 'file' }, true, environment(), ['Cluster']],
  ['with --context', { context: 'prod' }, false, environment(), ['Cluster']],
  ['in a Pod with a service account', {}, true, environment(), ['Machine', 'Cluster']],
  ['in a Pod with KUBECONFIG', {}, true, environment({ KUBECONFIG: '/k' }), ['Machine']],
  ['in a Pod with a data directory', {}, true, environment({}, true), ['Machine']],
] as const)
  test(`doctor ${where} checks: ${want.join(' and ')}`, () => deepEqual(checkedBy(options, isInPod, present), want))
