import type { RunRow } from '../../protocol/index.ts'
import { Badge, PlanChanges, Progress } from '../parts/badge.tsx'
import { formatCompact, formatNumber, formatWords } from '../parts/format.ts'
import { Age, Duration, Nothing } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { pathTo } from '../router.ts'
import type { Column } from '../table/column.ts'
import { type TableDefinition, TablePage } from '../table/table-page.tsx'

export const RunLink = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => (
  <a class="object" href={pathTo(['runs', namespace, name])} title={`${namespace}/${name}`}>
    <span class="namespace">{namespace}/</span>
    {name}
  </a>
)

const StackOfRun = ({ namespace, stack }: RunRow) => <a href={pathTo(['stacks', namespace, stack])}>{stack}</a>
const Message = ({ message, reason }: RunRow) => {
  const text = visibleText(message ?? reason ?? '')
  return text === '' ? <Nothing /> : <span title={text}>{text}</span>
}

const name: Column<RunRow> = { id: 'name', label: 'Run', width: 'minmax(196px, 2fr)', sort: 'key', cell: RunLink }
const stack: Column<RunRow> = { id: 'stack', label: 'Stack', width: 'minmax(128px, 1fr)', sort: 'stack', cell: StackOfRun }
const type: Column<RunRow> = { id: 'type', label: 'Type', width: '72px', sort: 'type', cell: row => row.type }
const trigger: Column<RunRow> = { id: 'trigger', label: 'Trigger', width: '128px', sort: 'trigger', cell: row => formatWords(row.trigger) }
const pool: Column<RunRow> = { id: 'pool', label: 'Pool', width: '100px', sort: 'pool', cell: row => row.pool }
const tenant: Column<RunRow> = { id: 'tenant', label: 'Tenant', width: '110px', sort: 'tenant', cell: row => row.tenant ?? <Nothing /> }
const engine: Column<RunRow> = { id: 'engine', label: 'Engine', width: '92px', sort: 'engine', cell: row => row.engine }

const card = (row: RunRow) => (
  <>
    <span class="card-line">
      <RunLink {...row} />
      <Badge value={row.phase} />
    </span>
    <span class="card-line dim">
      <span class="clip">{visibleText(row.message ?? row.reason ?? formatWords(row.trigger))}</span>
      {row.plan && <PlanChanges plan={row.plan} />}
    </span>
    <span class="card-line dim">
      <span>{[row.type, row.engine, row.pool].join(' · ')}</span>
      <Age ms={row.createdMs} />
    </span>
  </>
)

const runs: TableDefinition<'runs'> = {
  kind: 'runs',
  title: 'Runs',
  about: 'Each Run is one attempt of an engine to plan or apply a Stack.',
  facet: 'phase',
  columns: [
    name,
    {
      id: 'phase',
      label: 'Phase',
      width: '116px',
      sort: 'phase',
      cell: row => <Badge value={row.phase} />,
    },
    stack,
    type,
    {
      id: 'message',
      label: 'Message',
      width: 'minmax(110px, 4fr)',
      cell: row => (row.progress ? <Progress {...row.progress} /> : <Message {...row} />),
    },
    // What is destroyed is last, and must not be cut.
    {
      id: 'plan',
      label: 'Plan',
      width: '148px',
      cell: row => (row.plan ? <PlanChanges plan={row.plan} format={formatCompact} /> : <Nothing />),
    },
    {
      id: 'duration',
      label: 'Duration',
      width: '76px',
      isNumber: true,
      cell: row => <Duration fromMs={row.startedMs} toMs={row.finishedMs} />,
    },
    { id: 'created', label: 'Age', width: '58px', sort: 'createdMs', isNumber: true, cell: row => <Age ms={row.createdMs} /> },
    { ...trigger, isOptional: true },
    { ...engine, isOptional: true },
    { ...tenant, isOptional: true },
    { ...pool, isOptional: true },
    { id: 'worker', label: 'Worker', width: '150px', sort: 'worker', isOptional: true, cell: row => row.worker ?? <Nothing /> },
  ],
  card,
  cardHeightPx: 88,
  empty: {
    title: 'There is no Run yet',
    next: 'A Stack makes its first Run when it is applied. To request one:',
    command: 'oarlock run STACK -n NAMESPACE',
  },
}

const queue: TableDefinition<'queue'> = {
  kind: 'queue',
  title: 'Queue',
  about: 'The Runs that wait for a worker, in the order in which they start.',
  facet: 'pool',
  columns: [
    name,
    {
      id: 'position',
      label: 'Position',
      width: '80px',
      sort: 'queuePosition',
      isNumber: true,
      cell: row => (row.queuePosition === undefined ? <Nothing /> : formatNumber(row.queuePosition)),
    },
    { id: 'waits', label: 'Waits', width: '76px', sort: 'createdMs', isNumber: true, cell: row => <Age ms={row.createdMs} /> },
    stack,
    pool,
    tenant,
    type,
    { id: 'message', label: 'Why it waits', width: 'minmax(160px, 3fr)', cell: Message },
    { ...trigger, isOptional: true },
    { ...engine, isOptional: true },
  ],
  card,
  cardHeightPx: 88,
  empty: {
    title: 'No Run waits',
    next: 'Runs wait here while all workers of their pool are busy. To follow the queue in a terminal:',
    command: 'oarlock queue',
  },
}

export const RunsPage = () => <TablePage key="runs" definition={runs} />
export const QueuePage = () => <TablePage key="queue" definition={queue} />
