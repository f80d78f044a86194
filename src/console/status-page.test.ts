import { equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Stack } from '../api/index.ts'
import { escapeHtml, renderStatusPage } from './status-page.ts'

const evil = '<script>alert("x")</script>'
const conditionsOf = (ready: 'True' | 'False', reason: string, message: string, other?: string) =>
  ['Ready', ...(other ? [other] : [])].map(type => ({
    type,
    status: type === 'Ready' ? ready : ('True' as const),
    reason,
    message,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  }))
const stack = (name: string, message: string, conditions = conditionsOf('False', 'PlanFailed', message, 'Stalled')): Stack => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { engine: 'command', source: { inline: { files: { a: '' } } }, variables: { password: 'hunter2' } },
  status: {
    outputs: { token: 'hunter2' },
    conditions,
  },
})
const page = (stacks: Stack[], runs: Run[] = []) =>
  renderStatusPage({ stacks, runs, workers: [], version: '1', apiUrl: 'https://x', nowMs: Date.parse('2026-01-01T00:01:00Z') })

test('escapes text from objects', () => {
  const html = page([stack('a', evil)])
  ok(!html.includes(evil))
  ok(html.includes(escapeHtml(evil)))
  match(html, /<td class="bad">PlanFailed<\/td>/)
})

test('shows no outputs and no variables', () => ok(!page([stack('a', '')]).includes('hunter2')))

test('limits the rows of a large fleet', () => {
  const html = page(Array.from({ length: 2_000 }, (_, index) => stack(`s${index}`, '')))
  equal(html.match(/<tr><td>shop/g)?.length, 500)
  ok(html.includes('… and 1500 more'))
})

test('shows zero Stacks for an empty fleet', () => match(page([]), /<b>0<\/b> of <b>0<\/b> Stacks ready/))

for (const [reason, tone, conditions] of [
  ['Ready', 'good', conditionsOf('True', 'Applied', 'm')],
  ['Drifted', 'attention', conditionsOf('False', 'Drifted', 'm', 'Drifted')],
  ['ApplyIncomplete', 'attention', conditionsOf('False', 'ApplyIncomplete', 'm')],
  ['AwaitingApproval', 'attention', conditionsOf('False', 'AwaitingApproval', 'm', 'AwaitingApproval')],
  ['PersistentFailure', 'bad', conditionsOf('False', 'PersistentFailure', 'm', 'Reconciling')],
  ['PoolNotFound', 'bad', conditionsOf('False', 'PoolNotFound', 'm', 'Reconciling')],
  ['PoolLimit', 'busy', conditionsOf('False', 'PoolLimit', 'm', 'Reconciling')],
  // Of resources that differ from what was applied, while a change of the Stack is applied.
  [
    'Progressing',
    'busy',
    [...conditionsOf('False', 'Progressing', 'm', 'Reconciling'), ...conditionsOf('True', 'DriftFound', 'm', 'Drifted').slice(1)],
  ],
  ['Suspended', 'idle', conditionsOf('False', 'Suspended', 'm')],
] as const) {
  test(`shows a Stack as ${reason} (${tone})`, () =>
    match(page([stack('a', '', [...conditions])]), new RegExp(`<td class="${tone}">${reason}</td>`)))
}
