import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { requiresApproval } from './plan-decision.ts'

const labeled = (value: string) => ({ metadata: { labels: { 'oarlock.dev/approval': value } } })

for (const [approval, namespace, expected] of [
  ['Auto', undefined, false],
  ['Auto', { metadata: {} }, false],
  ['Auto', labeled('Required'), true],
  ['Auto', labeled('a typing error'), true],
  ['Manual', undefined, true],
  ['Manual', { metadata: {} }, true],
] as const)
  test(`spec.approval ${approval} in a namespace ${JSON.stringify(namespace?.metadata)} ${expected ? 'requires' : 'does not require'} an approval`, () =>
    equal(requiresApproval({ spec: { engine: 'command', source: {}, approval } }, namespace), expected))
