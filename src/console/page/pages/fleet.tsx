import type { ComponentChildren } from 'preact'
import { Badge } from '../parts/badge.tsx'
import { formatCount, formatDuration, formatNumber, formatSeconds } from '../parts/format.ts'
import { Age, Nothing } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { pathTo } from '../router.ts'
import type { Column } from '../table/column.ts'
import { type TableDefinition, TablePage } from '../table/table-page.tsx'
import { WorkerActions } from './worker-actions.tsx'

/** The tables of what executes Runs: rarely open, so that the first page does not load them. */

type Conditioned = { readonly ready: boolean; readonly reason?: string; readonly message?: string }
const readyCell = ({ ready, reason }: Conditioned) =>
  ready ? <Badge value="Ready" /> : <Badge value={reason ?? 'NotReady'} tone={reason === undefined ? 'idle' : 'attention'} />
const messageCell = ({ message, ready }: Conditioned) =>
  message && !ready ? <span title={visibleText(message)}>{visibleText(message)}</span> : <Nothing />

function count<Row>(id: keyof Row & string, label: string, options: Partial<Column<Row>> = {}): Column<Row> {
  const cell = (row: Row): ComponentChildren => {
    const value = row[id]
    return typeof value === 'number' ? formatNumber(value) : <Nothing />
  }
  return { id, label, width: '84px', sort: id, isNumber: true, cell, ...options }
}

const Lines = ({
  title,
  badge,
  lines,
}: {
  readonly title: ComponentChildren
  readonly badge?: ComponentChildren
  readonly lines: readonly ComponentChildren[]
}) => (
  <>
    <span class="card-line">
      <strong class="clip">{title}</strong>
      {badge}
    </span>
    {lines.map((line, index) => (
      <span key={index} class="card-line dim">
        <span class="clip">{line}</span>
      </span>
    ))}
  </>
)

const workers: TableDefinition<'workers'> = {
  kind: 'workers',
  title: 'Workers',
  about: 'Each worker is a process that executes Runs.',
  facet: 'phase',
  columns: [
    { id: 'name', label: 'Worker', width: 'minmax(160px, 2fr)', sort: 'key', cell: ({ name }) => name },
    {
      id: 'phase',
      label: 'Phase',
      width: '170px',
      sort: 'phase',
      cell: ({ phase, cordoned }) => (
        <>
          <Badge value={phase} /> {cordoned && <span class="tag">cordoned</span>}
        </>
      ),
    },
    { id: 'pool', label: 'Pool', width: '110px', sort: 'pool', cell: ({ pool }) => pool },
    { id: 'slots', label: 'Slots', width: '80px', sort: 'slots', isNumber: true, cell: ({ runs, slots }) => `${runs.length}/${slots}` },
    {
      id: 'runs',
      label: 'Runs',
      width: 'minmax(140px, 2fr)',
      cell: ({ runs }) => (runs.length > 0 ? <RunsOfWorker runs={runs} /> : <Nothing />),
    },
    { id: 'host', label: 'Host', width: 'minmax(100px, 1fr)', sort: 'host', cell: ({ host }) => host ?? <Nothing /> },
    { id: 'partition', label: 'Partition', width: '110px', sort: 'partition', cell: ({ partition }) => partition ?? <Nothing /> },
    { id: 'created', label: 'Age', width: '64px', sort: 'createdMs', isNumber: true, cell: ({ createdMs }) => <Age ms={createdMs} /> },
    { id: 'actions', label: 'Actions', width: '92px', cell: ({ name }) => <WorkerActions name={name} /> },
    { id: 'reason', label: 'Reason', width: '150px', sort: 'reason', isOptional: true, cell: ({ reason }) => reason ?? <Nothing /> },
    { id: 'version', label: 'Version', width: '100px', sort: 'version', isOptional: true, cell: ({ version }) => version ?? <Nothing /> },
  ],
  card: ({ name, phase, cordoned, pool, runs, slots, host, createdMs }) => (
    <>
      <span class="card-line">
        <strong class="clip">{name}</strong>
        <Badge value={phase} />
      </span>
      <span class="card-line dim">
        <span class="clip">{[`pool ${pool}`, host, cordoned && 'cordoned'].filter(Boolean).join(' · ')}</span>
        <Age ms={createdMs} />
      </span>
      <span class="card-line dim">
        <span>
          {runs.length}/{slots} slots in use
        </span>
        <WorkerActions name={name} />
      </span>
    </>
  ),
  cardHeightPx: 100,
  empty: {
    title: 'There is no worker now',
    next: 'Pools start workers when Runs wait, and stop them afterwards. To see which pools there are:',
    command: 'oarlock get workerpools',
  },
}

/** Runs of a worker are `namespace/name`. */
const RunsOfWorker = ({ runs }: { readonly runs: readonly string[] }) => (
  <>
    {runs.map((run, index) => {
      const [namespace = '', name] = run.split('/')
      return (
        <span key={run}>
          {index > 0 && ', '}
          {name === undefined ? run : <a href={pathTo(['runs', namespace, name])}>{run}</a>}
        </span>
      )
    })}
  </>
)

const pools: TableDefinition<'pools'> = {
  kind: 'pools',
  title: 'Pools',
  about: 'Each pool is a group of workers that follows the number of Runs that wait for it.',
  facet: 'mode',
  columns: [
    {
      id: 'name',
      label: 'Pool',
      width: 'minmax(120px, 1fr)',
      sort: 'key',
      cell: ({ name }) => <a href={pathTo(['pools', name])}>{name}</a>,
    },
    { id: 'ready', label: 'State', width: '150px', sort: 'ready', cell: readyCell },
    { id: 'mode', label: 'Mode', width: '110px', sort: 'mode', cell: ({ mode }) => mode },
    { id: 'lifecycle', label: 'Lifecycle', width: '110px', sort: 'lifecycle', cell: ({ lifecycle }) => lifecycle },
    count('workers', 'Workers'),
    count('busy', 'Busy'),
    count('desired', 'Desired'),
    count('queued', 'Queued'),
    {
      id: 'limits',
      label: 'Min–max',
      width: '92px',
      sort: 'max',
      isNumber: true,
      cell: ({ min, max }) => `${formatNumber(min)}–${formatNumber(max)}`,
    },
    { id: 'message', label: 'Message', width: 'minmax(140px, 2fr)', cell: messageCell },
  ],
  card: row => (
    <Lines
      title={<a href={pathTo(['pools', row.name])}>{row.name}</a>}
      badge={readyCell(row)}
      lines={[
        `${formatNumber(row.busy)} of ${formatNumber(row.workers)} workers busy, ${formatCount(row.queued, 'Run')} queued`,
        `${row.mode}, ${row.lifecycle}, ${row.min}–${row.max} workers`,
      ]}
    />
  ),
  cardHeightPx: 88,
  empty: {
    title: 'There is no pool',
    next: 'A WorkerPool starts workers for its Runs. To make one:',
    command: 'kubectl apply -f workerpool.yaml',
  },
}

const tenants: TableDefinition<'tenants'> = {
  kind: 'tenants',
  title: 'Tenants',
  about: 'Each Tenant owns namespaces and has a share of the workers.',
  columns: [
    {
      id: 'name',
      label: 'Tenant',
      width: 'minmax(140px, 1fr)',
      sort: 'key',
      cell: ({ name }) => <a href={pathTo(['stacks'], { filter: `tenant:${name}` })}>{name}</a>,
    },
    { id: 'ready', label: 'State', width: '150px', sort: 'ready', cell: readyCell },
    count('weight', 'Weight'),
    {
      id: 'running',
      label: 'Running',
      width: '92px',
      sort: 'running',
      isNumber: true,
      cell: ({ running, maxRunning }) =>
        maxRunning === undefined ? formatNumber(running) : `${formatNumber(running)}/${formatNumber(maxRunning)}`,
    },
    count('queued', 'Queued'),
    count('stacks', 'Stacks'),
    count('namespaces', 'Namespaces', { width: '104px' }),
    { id: 'partition', label: 'Partition', width: '110px', sort: 'partition', cell: ({ partition }) => partition ?? <Nothing /> },
    { id: 'message', label: 'Message', width: 'minmax(140px, 2fr)', cell: messageCell },
  ],
  card: row => (
    <Lines
      title={<a href={pathTo(['stacks'], { filter: `tenant:${row.name}` })}>{row.name}</a>}
      badge={readyCell(row)}
      lines={[
        `${formatNumber(row.running)}${row.maxRunning === undefined ? '' : ` of ${formatNumber(row.maxRunning)}`} Runs running, ${formatNumber(row.queued)} queued`,
        `${formatCount(row.stacks, 'Stack')} in ${formatCount(row.namespaces, 'namespace')}, weight ${row.weight}`,
      ]}
    />
  ),
  cardHeightPx: 88,
  empty: {
    title: 'There is no Tenant',
    next: 'A Tenant limits what its namespaces use. To make one:',
    command: 'kubectl apply -f tenant.yaml',
  },
}

const duration = (ms: number | undefined) => (ms === undefined ? <Nothing /> : formatSeconds(ms / 1_000))

const controllers: TableDefinition<'controllers'> = {
  kind: 'controllers',
  title: 'Controllers',
  about: 'Each Lease names the process that leads its controllers or holds a part of their keys; its controllers are listed after it.',
  note: 'Reconciles and latency are counted since each process started. Other processes update theirs in their Lease every 10 s.',
  columns: [
    { id: 'name', label: 'Controller or Lease', width: 'minmax(160px, 1fr)', sort: 'name', cell: ({ name }) => name },
    {
      id: 'holder',
      label: 'Holder',
      width: 'minmax(140px, 2fr)',
      sort: 'holder',
      cell: ({ holder }) => (holder === '' ? <span class="dim">no process</span> : <span title={holder}>{holder}</span>),
    },
    { id: 'renewed', label: 'Renewed', width: '84px', sort: 'renewedMs', isNumber: true, cell: ({ renewedMs }) => <Age ms={renewedMs} /> },
    {
      id: 'duration',
      label: 'Valid for',
      width: '84px',
      sort: 'leaseDurationMs',
      isNumber: true,
      cell: ({ leaseDurationMs }) => (leaseDurationMs === undefined ? <Nothing /> : formatDuration(leaseDurationMs)),
    },
    count('transitions', 'Transitions', { width: '104px' }),
    {
      id: 'buckets',
      label: 'Buckets',
      width: '92px',
      sort: 'buckets',
      isNumber: true,
      cell: ({ buckets }) => (buckets === undefined ? <Nothing /> : `${formatNumber(buckets)}/1,024`),
    },
    count('reconciles', 'Reconciles', { width: '96px' }),
    count('errors', 'Errors', { width: '72px' }),
    count('queued', 'Queued', { width: '76px' }),
    { id: 'p50', label: 'p50 ≤', width: '72px', sort: 'p50Ms', isNumber: true, cell: ({ p50Ms }) => duration(p50Ms) },
    { id: 'p99', label: 'p99 ≤', width: '72px', sort: 'p99Ms', isNumber: true, cell: ({ p99Ms }) => duration(p99Ms) },
  ],
  card: ({ name, holder, renewedMs, transitions, buckets, reconciles, errors = 0, p99Ms }) => (
    <Lines
      title={name}
      lines={[
        holder === '' ? 'no process' : holder,
        reconciles === undefined ? (
          <>
            {renewedMs !== undefined && (
              <>
                renewed <Age ms={renewedMs} /> ago, {formatCount(transitions ?? 0, 'transition')}
              </>
            )}
            {buckets !== undefined && `, ${formatNumber(buckets)} of 1,024 buckets`}
          </>
        ) : (
          `${formatCount(reconciles, 'reconcile')}, ${formatCount(errors, 'error')}${p99Ms === undefined ? '' : `, 99 % within ${formatSeconds(p99Ms / 1_000)}`}`
        ),
      ]}
    />
  ),
  cardHeightPx: 88,
  empty: {
    title: 'No controller is known',
    next: 'Those of this process are listed some seconds after its start, others with their Lease.',
  },
}

const partitions: TableDefinition<'partitions'> = {
  kind: 'partitions',
  title: 'Partitions',
  about: 'Each partition is an API server with a part of the namespaces.',
  columns: [
    { id: 'number', label: 'No.', width: '56px', sort: 'number', isNumber: true, cell: ({ number }) => number },
    { id: 'name', label: 'Partition', width: 'minmax(140px, 1fr)', sort: 'key', cell: ({ name }) => name },
    { id: 'ready', label: 'State', width: '150px', sort: 'ready', cell: readyCell },
    { id: 'roles', label: 'Roles', width: 'minmax(140px, 1fr)', cell: ({ roles }) => roles.join(', ') },
    {
      id: 'server',
      label: 'Server',
      width: 'minmax(180px, 2fr)',
      sort: 'server',
      cell: ({ server }) => <span title={server}>{server}</span>,
    },
    { id: 'message', label: 'Message', width: 'minmax(140px, 2fr)', cell: messageCell },
  ],
  card: row => <Lines title={row.name} badge={readyCell(row)} lines={[row.roles.join(', '), row.server]} />,
  cardHeightPx: 88,
  empty: { title: 'There is one API server only', next: 'To add a partition:', command: 'oarlock partition add NAME' },
}

const definitions = { workers, pools, tenants, controllers, partitions }
export type FleetTable = keyof typeof definitions

export const FleetPage = ({ table }: { readonly table: FleetTable }) => (
  <TablePage key={table} definition={definitions[table] as unknown as TableDefinition<'workers'>} />
)
