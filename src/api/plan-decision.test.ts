import { equal } from 'node:assert/strict'
import { test } from 'node:test'
import { approvalPolicyOf } from './names.ts'
import { isShown, requiresApproval } from './plan-decision.ts'
import type { Stack } from './stack.ts'

type Namespace = { readonly metadata: { readonly labels?: Readonly<Record<string, string>> } }
const labeled = (value: string): Namespace => ({ metadata: { labels: { 'oarlock.dev/approval': value } } })

for (const [approval, namespace, expected] of [
  ['Auto', undefined, false],
  ['Auto', { metadata: {} }, false],
  ['Auto', labeled('Required'), true],
  ['Auto', labeled('a typing error'), true],
  ['Manual', undefined, true],
  ['Manual', { metadata: {} }, true],
] as readonly (readonly ['Auto' | 'Manual', Namespace | undefined, boolean])[])
  test(`spec.approval ${approval} in a namespace ${JSON.stringify(namespace?.metadata)} ${expected ? 'requires' : 'does not require'} an approval`, () =>
    equal(requiresApproval({ approval }, approvalPolicyOf(namespace?.metadata.labels)), expected))

const shown = { uid: 'u', generation: 3 }
const stackOf = (metadata: object, digest?: string) =>
  ({
    metadata: { name: 'a', ...shown, resourceVersion: '9', creationTimestamp: '2026-06-01T10:00:00Z', ...metadata },
    status: digest === undefined ? {} : { plan: { digest } },
  }) as unknown as Stack

for (const [what, stack, digest, expected] of [
  ['with a newer status', stackOf({ resourceVersion: '10' }), undefined, true],
  ['whose plan was shown', stackOf({}, 'sha256:1'), 'sha256:1', true],
  ['with another spec', stackOf({ generation: 4 }, 'sha256:1'), 'sha256:1', false],
  ['that was created again', stackOf({ uid: 'v' }, 'sha256:1'), 'sha256:1', false],
  ['with another plan', stackOf({}, 'sha256:2'), 'sha256:1', false],
  ['whose plan has ended', stackOf({}), 'sha256:1', false],
] as const)
  test(`invariant 11: a Stack ${what} ${expected ? 'is' : 'is not'} what a user has seen`, () =>
    equal(isShown(stack, { ...shown, digest }), expected))
