import { equal, match, ok } from 'node:assert/strict'
import { test } from 'node:test'
import type { Run, Stack } from '../api/index.ts'
import { escapeHtml, renderStatusPage } from './status-page.ts'

const evil = '<script>alert("x")</script>'
const stack = (name: string, message: string): Stack => ({
  apiVersion: 'oarlock.dev/v1alpha1',
  kind: 'Stack',
  metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { engine: 'command', source: { inline: { files: { a: '' } } }, variables: { password: 'hunter2' } },
  status: {
    outputs: { token: 'hunter2' },
    conditions: [{ type: 'Stalled', status: 'True', reason: 'PlanFailed', message, lastTransitionTime: '2026-01-01T00:00:00Z' }],
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
