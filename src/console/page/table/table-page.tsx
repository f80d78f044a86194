import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { filterFields, type RowOf, type TableFacts, type TableKind } from '../../protocol/index.ts'
import { Command } from '../parts/command.tsx'
import { formatNumber } from '../parts/format.ts'
import { isNarrow } from '../parts/media.ts'
import { Notice } from '../parts/notice.tsx'
import { navigate, pathTo, route } from '../router.ts'
import { currentSession } from '../session.ts'
import { stored } from '../stored.ts'
import { useView } from '../stream/use-view.ts'
import type { Column } from './column.ts'
import { type ChosenColumns, ColumnsMenu, shownColumns } from './columns-menu.tsx'
import { FacetChips } from './facet-chips.tsx'
import { FilterField } from './filter-field.tsx'
import { firstWindow, windowFor } from './row-window.ts'
import { areSavedViews, SavedViewsMenu } from './saved-views.tsx'
import { type Selection, VirtualTable } from './virtual-table.tsx'

export type TableDefinition<Kind extends TableKind> = {
  readonly kind: Kind
  readonly title: string
  /** What the table is, in one sentence. */
  readonly about: string
  /** What users may miss in the rows. Below the table. */
  readonly note?: string
  readonly columns: readonly Column<RowOf[Kind]>[]
  /** The field whose values are chips with their counts. */
  readonly facet?: string
  readonly card: (row: RowOf[Kind]) => ComponentChildren
  readonly cardHeightPx: number
  /** What to do when there is nothing yet. */
  readonly empty: { readonly title: string; readonly next: string; readonly command?: string }
  /** Shown while rows are selected. */
  readonly bulk?: (props: BulkProps<RowOf[Kind]>) => ComponentChildren
}

export type BulkProps<Row> = {
  readonly selection: Signal<Selection<Row>>
  readonly filter: string
  /** How many rows match the filter. */
  readonly total: number
}

const noFacts: TableFacts = { total: 0, all: 0, offset: 0, counts: {} }
const isTextList = (value: unknown): value is readonly string[] => Array.isArray(value) && value.every(one => typeof one === 'string')

/** The page of a table: its filter and order are in the address, its columns and views in the browser. */
export function TablePage<Kind extends TableKind>({ definition }: { readonly definition: TableDefinition<Kind> }) {
  type Row = RowOf[Kind]
  const { kind, title, about, note, facet, empty, bulk } = definition
  const { query } = route.value
  const filter = query.get('filter') ?? ''
  const sort = query.get('sort') ?? undefined
  const [chosen] = useState(() =>
    stored<ChosenColumns>(`columns.${kind}`, undefined, isTextList as (value: unknown) => value is ChosenColumns),
  )
  const [views] = useState(() => stored(`views.${kind}`, [], areSavedViews))
  const subject = `${filter}\n${sort}`
  const rowWindow = useSignal(firstWindow)
  const selection = useSignal<Selection<Row>>(new Map())
  const [shownSubject, setShownSubject] = useState(subject)
  if (shownSubject !== subject) {
    setShownSubject(subject)
    rowWindow.value = firstWindow
  }
  useEffect(() => {
    selection.value = new Map()
  }, [filter])

  const view = useView<TableFacts, Row>({ kind, ...(filter && { filter }), ...(sort && { sort }), ...rowWindow.value })
  const facts = view.facts.value
  const error = view.error.value
  const order = view.order.value
  const features = currentSession().features
  const columns = useMemo(
    () => definition.columns.filter(({ id }) => (id !== 'tenant' && id !== 'partition' ? true : features.includes(`${id}s`))),
    [definition, features],
  )
  const shown = useMemo(() => shownColumns(columns, chosen.value), [columns, chosen.value])
  const go = (next: { filter?: string; sort?: string | undefined }, replace = false) =>
    navigate(pathTo([kind], { filter, sort, ...next }), { replace })
  const { total, all, counts, offset, invalid } = facts ?? noFacts
  return (
    <section class="table-page" aria-labelledby="page-title">
      <header class="page-header">
        <h1 id="page-title" title={about}>
          {title}
        </h1>
        <p class="total" aria-live="polite">
          {facts && !invalid && (filter ? `${formatNumber(total)} of ${formatNumber(all)}` : formatNumber(all))}
        </p>
        <div class="tools">
          <SavedViewsMenu kind={kind} views={views} filter={filter} sort={sort} />
          {!isNarrow.value && <ColumnsMenu columns={columns as readonly Column<never>[]} chosen={chosen} />}
        </div>
      </header>
      <FilterField
        filter={filter}
        fields={filterFields[kind]}
        counts={counts}
        invalid={invalid}
        onFilter={value => go({ filter: value }, true)}
      />
      {facet && <FacetChips field={facet} counts={counts[facet] ?? {}} filter={filter} onFilter={value => go({ filter: value })} />}
      {error && (
        <Notice isError title={error.code === 'Forbidden' ? `You may not see these ${title}` : `The ${title} cannot be read now`}>
          <p>{error.message}</p>
          {error.code === 'Forbidden' && <p>Ask an administrator for the permission to list them.</p>}
        </Notice>
      )}
      {!facts && !error && <div class="loading" aria-busy="true" />}
      {facts && !invalid && total === 0 && (
        <Notice title={all === 0 ? empty.title : `No row of ${formatNumber(all)} matches the filter`}>
          {all === 0 ? (
            <>
              <p>{empty.next}</p>
              {empty.command && <Command text={empty.command} />}
            </>
          ) : (
            <button type="button" onClick={() => go({ filter: '' })}>
              Clear the filter
            </button>
          )}
        </Notice>
      )}
      {facts && total > 0 && (
        <VirtualTable
          label={title}
          rows={{ total, offset, order, row: key => view.row(key) }}
          columns={shown}
          sort={sort}
          onSort={next => go({ sort: next })}
          onVisible={(first, last) => {
            rowWindow.value = windowFor(rowWindow.value, first, last)
          }}
          card={definition.card}
          cardHeightPx={definition.cardHeightPx}
          {...(bulk && { selection })}
          subject={subject}
        />
      )}
      {note !== undefined && facts && total > 0 && <p class="hint">{note}</p>}
      {bulk?.({ selection, filter, total })}
    </section>
  )
}
