import { deepEqual, equal, ok } from 'node:assert/strict'
import { test } from 'node:test'
import { plainPaint, visibleWidth } from '../output/style.ts'
import { makeRun, makeStack } from './fleet.testing.ts'
import { changeLines, type FleetRow, fleetRows, formatSeconds, renderFleet } from './fleet-view.ts'

const condition = (type: string, reason: string, message: string, status: 'True' | 'False' = 'True') => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
})
const startedAt = '2026-01-01T00:00:00Z'
const nowMs = Date.parse(startedAt) + 2_100

const stacks = [
  makeStack('network', { conditions: [condition('Ready', 'Applied', 'applied')], status: { resources: 4, outputs: { id: 'x' } } }),
  makeStack('cluster', { conditions: [condition('Reconciling', 'Applying', 'applying')] }),
  makeStack('app', { conditions: [condition('Reconciling', 'DependencyNotReady', 'waits for cluster')] }),
  makeStack('broken', { conditions: [condition('Stalled', 'PlanFailed', 'variable replicas:\n a number is required')] }),
]
const runs = [
  makeRun('network', 1, 'Succeeded', { startedAt, finishedAt: '2026-01-01T00:00:01Z' }),
  makeRun('cluster', 1, 'Lost', { startedAt }),
  makeRun('cluster', 2, 'Applying', { startedAt, progress: { done: 3, total: 12, current: 'terraform_data.node[2]' } }),
]
const rows = fleetRows(stacks, runs, nowMs)

test('renders state and progress of each Stack within 80 columns', () => {
  const lines = renderFleet(rows, { width: 80, height: 24, paint: plainPaint, frame: 0, elapsedMs: 2_100 })
  deepEqual(lines, [
    '  STACK         ENGINE     STATE',
    '· shop/app      terraform  Waiting     waits for cluster',
    '✗ shop/broken   terraform  Failed      variable replicas: a number is …',
    '⠋ shop/cluster  terraform  Applying    3 of 12 terraform_data.node[2]      2.1s',
    '✓ shop/network  terraform  Ready       4 resources, outputs id               1s',
    '',
    '  1 of 4 Stacks as expected after 2.1s',
  ])
})

for (const [width, height] of [
  [80, 24],
  [60, 24],
  [132, 5],
  [40, 4],
] as const) {
  test(`renders 30 Stacks within ${width} columns and ${height} lines`, () => {
    const many: FleetRow[] = Array.from({ length: 30 }, (_, index) => ({ ...rows[index % rows.length]!, key: `shop/stack-${index}` }))
    const lines = renderFleet(many, { width, height, paint: plainPaint, frame: 3, elapsedMs: 0 })
    ok(lines.length <= height, `${lines.length} lines`)
    const table = lines.slice(0, -1)
    if (width >= 60) equal(Math.max(...table.map(visibleWidth)) <= width, true, table.join('\n'))
  })
}

test('prints plain lines only for changes of state', () => {
  deepEqual(changeLines([], rows.slice(0, 1)), ['shop/app: Waiting - waits for cluster'])
  deepEqual(changeLines(rows, rows), [])
  const later = fleetRows(stacks, [...runs, makeRun('app', 1, 'Queued')], nowMs)
  deepEqual(changeLines(rows, later), ['shop/app: Queued (2.1s)'])
})

for (const [ms, want] of [
  [0, '0.0s'],
  [444, '0.4s'],
  [59_900, '59.9s'],
  [72_000, '1m12s'],
] as const) {
  test(`formats ${ms} ms as ${want}`, () => equal(formatSeconds(ms), want))
}
