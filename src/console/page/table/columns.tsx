import type { ComponentChildren } from 'preact'
import { type PlanCounts, phaseTones, type RowOf, stateTones, type TableKind, type Tone } from '../../protocol/index.ts'
import { formatCount } from '../parts/format.ts'
import { State, spaced } from '../parts/state.tsx'
import { Age, Duration } from '../parts/time.tsx'

export type Column<R> = {
  readonly title: string
  /** A field of the row. */
  readonly sort?: string
  /** Of the grid. */
  readonly width: string
  readonly align?: 'end'
  readonly cell: (row: R) => ComponentChildren
}

const none = <span class="none">–</span>
const number = (count: number | undefined) => (count === undefined ? none : formatCount(count))
const plan = (counts: PlanCounts | undefined) => (counts ? <Plan {...counts} /> : none)
const conditionTone = (ready: boolean): Tone => (ready ? 'good' : 'bad')

export function Plan({ add, change, destroy }: PlanCounts) {
  return (
    <span class="plan">
      <span class="add">+{add}</span> <span class="change">~{change}</span> <span class="destroy">−{destroy}</span>
    </span>
  )
}

const namespaceAndName = (row: { readonly namespace: string; readonly name: string }) => (
  <>
    <span class="muted">{row.namespace}/</span>
    <strong>{row.name}</strong>
  </>
)

const runColumns: readonly Column<RowOf['runs']>[] = [
  { title: 'Run', sort: 'name', width: 'minmax(12rem, 2fr)', cell: namespaceAndName },
  { title: 'Phase', sort: 'phase', width: '8.5rem', cell: row => <State tone={phaseTones[row.phase]} text={spaced(row.phase)} /> },
  { title: 'Type', sort: 'type', width: '6rem', cell: row => row.type },
  { title: 'Trigger', sort: 'trigger', width: '8rem', cell: row => spaced(row.trigger) },
  { title: 'Changes', width: '7rem', cell: row => plan(row.plan) },
  { title: 'Worker', sort: 'worker', width: 'minmax(7rem, 1fr)', cell: row => row.worker ?? none },
  { title: 'Message', width: 'minmax(10rem, 2fr)', cell: row => row.message ?? row.reason ?? '' },
  { title: 'Took', width: '6.5rem', align: 'end', cell: row => <Duration fromMs={row.startedMs} toMs={row.finishedMs} /> },
  { title: 'Age', sort: 'createdMs', width: '5rem', align: 'end', cell: row => <Age ms={row.createdMs} /> },
]

/** The columns of each table; the first is the title of a card on a phone, the second stands beside it. */
export const columnsOf: { readonly [K in TableKind]: readonly Column<RowOf[K]>[] } = {
  stacks: [
    { title: 'Stack', sort: 'name', width: 'minmax(12rem, 2fr)', cell: namespaceAndName },
    { title: 'State', sort: 'state', width: '11.5rem', cell: row => <State tone={stateTones[row.state]} text={spaced(row.state)} /> },
    { title: 'Message', width: 'minmax(6rem, 3fr)', cell: row => row.message },
    { title: 'Plan', width: '7rem', cell: row => plan(row.plan) },
    { title: 'Engine', sort: 'engine', width: '7rem', cell: row => row.engine },
    { title: 'Tenant', sort: 'tenant', width: '7rem', cell: row => row.tenant ?? none },
    { title: 'Resources', sort: 'resources', width: '6.5rem', align: 'end', cell: row => number(row.resources) },
    { title: 'Last run', sort: 'finishedMs', width: '5.5rem', align: 'end', cell: row => <Age ms={row.finishedMs} /> },
  ],
  runs: runColumns,
  queue: [
    { title: 'Run', sort: 'name', width: 'minmax(12rem, 2fr)', cell: namespaceAndName },
    { title: 'Position', sort: 'queuePosition', width: '6rem', align: 'end', cell: row => number(row.queuePosition) },
    { title: 'Why it waits', sort: 'reason', width: 'minmax(12rem, 3fr)', cell: row => row.message ?? row.reason ?? '' },
    { title: 'Type', sort: 'type', width: '6rem', cell: row => row.type },
    { title: 'Pool', sort: 'pool', width: '8rem', cell: row => row.pool },
    { title: 'Tenant', sort: 'tenant', width: '8rem', cell: row => row.tenant ?? none },
    { title: 'Waits', sort: 'createdMs', width: '5rem', align: 'end', cell: row => <Age ms={row.createdMs} /> },
  ],
  workers: [
    { title: 'Worker', sort: 'name', width: 'minmax(12rem, 2fr)', cell: row => <strong>{row.name}</strong> },
    { title: 'Phase', sort: 'phase', width: '8rem', cell: row => <State tone={row.cordoned ? 'attention' : 'good'} text={row.phase} /> },
    { title: 'Pool', sort: 'pool', width: '8rem', cell: row => row.pool },
    { title: 'Runs', width: '6rem', align: 'end', cell: row => `${row.runs.length} / ${row.slots}` },
    { title: 'Host', sort: 'host', width: 'minmax(8rem, 1fr)', cell: row => row.host ?? none },
    { title: 'Version', sort: 'version', width: '7rem', cell: row => row.version ?? none },
    { title: 'Age', sort: 'createdMs', width: '5rem', align: 'end', cell: row => <Age ms={row.createdMs} /> },
  ],
  pools: [
    { title: 'Pool', sort: 'name', width: 'minmax(10rem, 1fr)', cell: row => <strong>{row.name}</strong> },
    {
      title: 'Ready',
      width: '9rem',
      cell: row => <State tone={conditionTone(row.ready)} text={row.ready ? 'Ready' : spaced(row.reason ?? 'Not ready')} />,
    },
    { title: 'Mode', sort: 'mode', width: '8rem', cell: row => row.mode },
    { title: 'Workers', sort: 'workers', width: '6rem', align: 'end', cell: row => number(row.workers) },
    { title: 'Desired', sort: 'desired', width: '6rem', align: 'end', cell: row => number(row.desired) },
    { title: 'Limits', width: '6rem', align: 'end', cell: row => `${row.min}–${row.max}` },
    { title: 'Busy', sort: 'busy', width: '5rem', align: 'end', cell: row => number(row.busy) },
    { title: 'Queued', sort: 'queued', width: '5rem', align: 'end', cell: row => number(row.queued) },
    { title: 'Message', width: 'minmax(8rem, 2fr)', cell: row => row.message ?? '' },
  ],
  tenants: [
    { title: 'Tenant', sort: 'name', width: 'minmax(10rem, 1fr)', cell: row => <strong>{row.name}</strong> },
    {
      title: 'Ready',
      width: '9rem',
      cell: row => <State tone={conditionTone(row.ready)} text={row.ready ? 'Ready' : spaced(row.reason ?? 'Not ready')} />,
    },
    { title: 'Running', sort: 'running', width: '7rem', align: 'end', cell: row => `${row.running} / ${row.maxRunning ?? '∞'}` },
    { title: 'Queued', sort: 'queued', width: '6rem', align: 'end', cell: row => number(row.queued) },
    { title: 'Stacks', sort: 'stacks', width: '6rem', align: 'end', cell: row => number(row.stacks) },
    { title: 'Namespaces', sort: 'namespaces', width: '7rem', align: 'end', cell: row => number(row.namespaces) },
    { title: 'Weight', sort: 'weight', width: '5rem', align: 'end', cell: row => number(row.weight) },
    { title: 'Message', width: 'minmax(8rem, 2fr)', cell: row => row.message ?? '' },
  ],
  controllers: [
    { title: 'Controller', sort: 'name', width: 'minmax(12rem, 1fr)', cell: row => <strong>{row.name}</strong> },
    { title: 'Leader', sort: 'holder', width: 'minmax(12rem, 2fr)', cell: row => row.holder },
    { title: 'Renewed', sort: 'renewedMs', width: '6rem', align: 'end', cell: row => <Age ms={row.renewedMs} /> },
    { title: 'Lease', width: '6rem', align: 'end', cell: row => `${row.leaseDurationMs / 1_000} s` },
    { title: 'Transitions', sort: 'transitions', width: '7rem', align: 'end', cell: row => number(row.transitions) },
  ],
  partitions: [
    { title: 'Partition', sort: 'name', width: 'minmax(10rem, 1fr)', cell: row => <strong>{row.name}</strong> },
    {
      title: 'Ready',
      width: '9rem',
      cell: row => <State tone={conditionTone(row.ready)} text={row.ready ? 'Ready' : spaced(row.reason ?? 'Not ready')} />,
    },
    { title: 'Number', sort: 'number', width: '5rem', align: 'end', cell: row => number(row.number) },
    { title: 'Roles', width: '10rem', cell: row => row.roles.join(', ') },
    { title: 'Server', width: 'minmax(12rem, 2fr)', cell: row => row.server },
    { title: 'Message', width: 'minmax(8rem, 2fr)', cell: row => row.message ?? '' },
  ],
}

/** The field whose values are the buttons above the table. */
export const chipFields: Partial<Record<TableKind, string>> = {
  stacks: 'state',
  runs: 'phase',
  queue: 'reason',
  workers: 'phase',
  pools: 'mode',
}
