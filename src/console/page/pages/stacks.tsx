import type { StackRow } from '../../protocol/index.ts'
import { Badge, isSuspendedToo, PlanChanges, Progress } from '../parts/badge.tsx'
import { formatNumber } from '../parts/format.ts'
import { Age, Nothing, Until } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'
import { pathTo } from '../router.ts'
import { BulkActions } from '../table/bulk-actions.tsx'
import { type TableDefinition, TablePage } from '../table/table-page.tsx'

const StackLink = ({ namespace, name }: { readonly namespace: string; readonly name: string }) => (
  <a class="object" href={pathTo(['stacks', namespace, name])} title={`${namespace}/${name}`}>
    <span class="namespace">{namespace}/</span>
    {name}
  </a>
)

const definition: TableDefinition<'stacks'> = {
  kind: 'stacks',
  title: 'Stacks',
  about: 'Each Stack is infrastructure that Oarlock keeps as it is declared.',
  facet: 'state',
  columns: [
    { id: 'name', label: 'Stack', width: 'minmax(200px, 2fr)', sort: 'key', cell: StackLink },
    { id: 'state', label: 'State', width: '152px', sort: 'state', cell: ({ state }) => <Badge value={state} /> },
    {
      id: 'message',
      label: 'Message',
      width: 'minmax(140px, 4fr)',
      cell: row => (
        <>
          {isSuspendedToo(row) && <span class="tag">suspended</span>} {row.plan && <PlanChanges plan={row.plan} />}{' '}
          {row.progress ? (
            <>
              <Progress {...row.progress} /> {row.phase}
            </>
          ) : (
            <span title={visibleText(row.message)}>{visibleText(row.message)}</span>
          )}
        </>
      ),
    },
    { id: 'engine', label: 'Engine', width: '84px', sort: 'engine', cell: ({ engine }) => engine },
    { id: 'tenant', label: 'Tenant', width: '92px', sort: 'tenant', cell: ({ tenant }) => tenant ?? <Nothing /> },
    {
      id: 'resources',
      label: 'Resources',
      width: '82px',
      sort: 'resources',
      isNumber: true,
      cell: ({ resources }) => (resources === undefined ? <Nothing /> : formatNumber(resources)),
    },
    { id: 'since', label: 'Since', width: '60px', sort: 'sinceMs', isNumber: true, cell: ({ sinceMs }) => <Age ms={sinceMs} /> },
    {
      id: 'finished',
      label: 'Last Run',
      width: '80px',
      sort: 'finishedMs',
      isNumber: true,
      isOptional: true,
      cell: ({ finishedMs }) => <Age ms={finishedMs} />,
    },
    {
      id: 'next',
      label: 'Next Run',
      width: '84px',
      sort: 'nextRunMs',
      isNumber: true,
      isOptional: true,
      cell: ({ nextRunMs }) => <Until ms={nextRunMs} />,
    },
    { id: 'reason', label: 'Reason', width: '150px', sort: 'reason', isOptional: true, cell: ({ reason }) => reason },
    { id: 'pool', label: 'Pool', width: '100px', sort: 'pool', isOptional: true, cell: ({ pool }) => pool },
    { id: 'labels', label: 'Labels', width: 'minmax(120px, 1fr)', isOptional: true, cell: Labels },
    {
      id: 'created',
      label: 'Created',
      width: '80px',
      sort: 'createdMs',
      isNumber: true,
      isOptional: true,
      cell: ({ createdMs }) => <Age ms={createdMs} />,
    },
  ],
  card: row => (
    <>
      <span class="card-line">
        <StackLink {...row} />
        <Badge value={row.state} />
      </span>
      <span class="card-line dim">
        <span class="clip">{visibleText(row.message)}</span>
        {row.plan && <PlanChanges plan={row.plan} />}
      </span>
      <span class="card-line dim">
        <span>{[row.engine, row.tenant, isSuspendedToo(row) && 'suspended'].filter(Boolean).join(' · ')}</span>
        <Age ms={row.sinceMs} />
      </span>
    </>
  ),
  cardHeightPx: 88,
  empty: {
    title: 'There is no Stack yet',
    next: 'A Stack names where its code is and which engine runs it. Apply one:',
    command: 'oarlock apply -f stack.yaml',
  },
  bulk: props => <BulkActions {...props} />,
}

function Labels({ labels }: StackRow) {
  const text = Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ')
  return text === '' ? <Nothing /> : <span title={text}>{text}</span>
}

export const StacksPage = () => <TablePage definition={definition} />
