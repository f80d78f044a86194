import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { isNarrow } from '../parts/media.ts'
import { useShortcuts } from '../parts/shortcuts.ts'
import type { Column } from './column.ts'

type Keyed = { readonly key: string }

/** Rows by their keys, as they were when the user selected them: what is approved must be the plan that was shown. */
export type Selection<Row> = ReadonlyMap<string, Row>

/** The rows of a table that the page has: the others are placeholders until they arrive. */
export type TableRows<Row extends Keyed> = {
  readonly total: number
  /** Of the first row in `order`. */
  readonly offset: number
  readonly order: readonly string[]
  row(key: string): Signal<Row> | undefined
}

export type VirtualTableProps<Row extends Keyed> = {
  readonly label: string
  readonly rows: TableRows<Row>
  readonly columns: readonly Column<Row>[]
  /** Of a field; a `-` before it reverses the order. */
  readonly sort: string | undefined
  readonly onSort: (sort: string) => void
  /** Called with the indexes of the rows that are visible. */
  readonly onVisible: (first: number, last: number) => void
  /** What a row is on a phone, in place of its columns. */
  readonly card: (row: Row) => ComponentChildren
  readonly cardHeightPx: number
  /** Undefined: rows cannot be selected. */
  readonly selection?: Signal<Selection<Row>>
  /** Changes when other rows are shown, for which the table starts at its top again. */
  readonly subject: string
}

/** Must be that of the style sheet. */
const rowHeightPx = 34
/** Rows beyond those that are visible, in both directions. */
const overscanRows = 8
/** The rows that are scrolled before those in the document change: fewer in one frame, and none in most frames of a slow scroll. */
const stepRows = 2
/**
 * A scroll that is faster shows placeholders until it is slower: no one can read rows that pass a screen in a fifth of a second, and whole screens
 * of rows take 20 ms for each frame. A single jump, as with Page Down, shows its rows.
 */
const fastRowsPerMs = 0.15
const minFastRows = 3
const slowAfterMs = 90

/**
 * A table of any length of which only the visible rows are in the document. Rows have one height, which is how their places are known without
 * measuring. A row that changes renders alone. With `j` and `k` the focus moves over the rows.
 */
export function VirtualTable<Row extends Keyed>(props: VirtualTableProps<Row>) {
  const { label, rows, columns, selection, subject, onVisible } = props
  const scroller = useRef<HTMLDivElement>(null)
  const first = useSignal(0)
  const visibleRows = useSignal(30)
  const active = useSignal(-1)
  const isFast = useSignal(false)
  const lastScroll = useRef({ top: 0, atMs: 0 })
  const slowing = useRef<ReturnType<typeof setTimeout>>(undefined)
  /** Indexes of the rows in the document that are no placeholders. */
  const rendered = useRef<ReadonlySet<number>>(new Set())
  const heightPx = isNarrow.value ? props.cardHeightPx : rowHeightPx

  const measure = () => {
    const element = scroller.current
    if (!element) return
    const top = Math.floor(element.scrollTop / heightPx)
    const count = Math.ceil(element.clientHeight / heightPx)
    const atMs = performance.now()
    const moved = Math.abs(top - lastScroll.current.top)
    if (moved >= minFastRows && moved > fastRowsPerMs * (atMs - lastScroll.current.atMs)) {
      isFast.value = true
      clearTimeout(slowing.current)
      slowing.current = setTimeout(() => {
        isFast.value = false
      }, slowAfterMs)
    }
    if (moved > 0) lastScroll.current = { top, atMs }
    first.value = Math.floor(top / stepRows) * stepRows
    visibleRows.value = count + stepRows
    onVisible(top, top + count)
  }
  useLayoutEffect(() => {
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(scroller.current as Element)
    return () => observer.disconnect()
  }, [heightPx])
  useLayoutEffect(() => {
    scroller.current?.scrollTo({ top: 0 })
    active.value = -1
  }, [subject])
  // A row that has not arrived has no link: the focus stays where it is.
  useLayoutEffect(() => {
    if (active.value >= 0) scroller.current?.querySelector<HTMLElement>('tr.active a')?.focus({ preventScroll: true })
  }, [active.value])

  const moveTo = (index: number) => {
    const element = scroller.current
    if (!element || rows.total === 0) return
    const target = Math.max(0, Math.min(rows.total - 1, index))
    active.value = target
    const headerPx = element.querySelector('thead')?.offsetHeight ?? 0
    const [top, bottom] = [target * heightPx, (target + 1) * heightPx]
    if (top < element.scrollTop) element.scrollTop = top
    else if (bottom + headerPx > element.scrollTop + element.clientHeight) element.scrollTop = bottom + headerPx - element.clientHeight
    measure()
  }
  useShortcuts({ j: () => moveTo(active.value + 1), k: () => moveTo(active.value - 1) })

  const start = Math.max(0, Math.min(first.value, rows.total) - overscanRows)
  const end = Math.min(rows.total, first.value + visibleRows.value + overscanRows)
  const shown = new Set<number>()
  const tracks = `${selection ? '36px ' : ''}${columns.map(({ width }) => width).join(' ')}`
  return (
    <div
      class={`table-scroll ${isNarrow.value ? 'cards' : ''}`}
      ref={scroller}
      onScroll={measure}
      style={{ '--rows-height': `${rows.total * heightPx}px` }}
    >
      <table aria-label={label} aria-rowcount={rows.total + 1} style={{ '--tracks': tracks, '--row-height': `${heightPx}px` }}>
        <thead>
          <tr aria-rowindex={1}>
            {selection && (
              <th class="select" scope="col">
                <SelectLoaded rows={rows} selection={selection} />
              </th>
            )}
            {columns.map(column => (
              <ColumnHeader key={column.id} column={column as Column<never>} sort={props.sort} onSort={props.onSort} />
            ))}
          </tr>
        </thead>
        <tbody style={{ height: `${rows.total * heightPx}px` }}>
          {Array.from({ length: Math.max(0, end - start) }, (_, at) => {
            const index = start + at
            const key = rows.order[index - rows.offset]
            const isShown = key !== undefined && (!isFast.value || rendered.current.has(index))
            if (isShown) shown.add(index)
            if (index === end - 1) rendered.current = shown
            return (
              <TableRow
                key={index}
                index={index}
                heightPx={heightPx}
                row={isShown ? rows.row(key) : undefined}
                columns={columns}
                card={isNarrow.value ? props.card : undefined}
                selection={selection}
                isActive={active.value === index}
              />
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

type TableRowProps<Row extends Keyed> = {
  readonly index: number
  readonly heightPx: number
  readonly row: Signal<Row> | undefined
  readonly columns: readonly Column<Row>[]
  readonly card: ((row: Row) => ComponentChildren) | undefined
  readonly selection: Signal<Selection<Row>> | undefined
  readonly isActive: boolean
}

/** With unchanged properties it renders only when a signal that it reads has changed. */
function TableRow<Row extends Keyed>({ index, heightPx, row, columns, card, selection, isActive }: TableRowProps<Row>) {
  const value = row?.value
  const place = { transform: `translateY(${index * heightPx}px)` }
  if (!value) return <tr class="placeholder" aria-rowindex={index + 2} aria-busy="true" style={place} />
  return (
    <tr class={isActive ? 'active' : ''} aria-rowindex={index + 2} style={place}>
      {selection && (
        <td class="select">
          <input
            type="checkbox"
            aria-label={`Select ${value.key}`}
            checked={selection.value.has(value.key)}
            onChange={() => {
              selection.value = toggled(selection.value, value)
            }}
          />
        </td>
      )}
      {card ? (
        <td class="card">{card(value)}</td>
      ) : (
        columns.map(({ id, isNumber, cell }) => (
          <td key={id} class={isNumber ? 'number' : ''}>
            {cell(value)}
          </td>
        ))
      )}
    </tr>
  )
}

function ColumnHeader({
  column: { label, sort: field, isNumber },
  sort,
  onSort,
}: {
  readonly column: Column<never>
  readonly sort: string | undefined
  readonly onSort: (sort: string) => void
}) {
  if (field === undefined)
    return (
      <th scope="col" class={isNumber ? 'number' : ''}>
        {label}
      </th>
    )
  const isAscending = sort === field
  const isDescending = sort === `-${field as string}`
  return (
    <th scope="col" class={isNumber ? 'number' : ''} aria-sort={isAscending ? 'ascending' : isDescending ? 'descending' : undefined}>
      <button type="button" onClick={() => onSort(isAscending ? `-${field as string}` : field)}>
        {label}
        <span class="order" aria-hidden="true">
          {isAscending ? '↑' : isDescending ? '↓' : ''}
        </span>
      </button>
    </th>
  )
}

/** Selects the rows that the page has, or none. */
function SelectLoaded<Row extends Keyed>({
  rows,
  selection,
}: {
  readonly rows: TableRows<Row>
  readonly selection: Signal<Selection<Row>>
}) {
  const has = selection.value
  const isAll = rows.order.length > 0 && rows.order.every(key => has.has(key))
  return (
    <input
      type="checkbox"
      aria-label="Select the rows that are loaded"
      checked={isAll}
      ref={element => {
        if (element) element.indeterminate = has.size > 0 && !isAll
      }}
      onChange={() => {
        const loaded = isAll ? [] : rows.order.map(key => rows.row(key)?.peek()).filter(row => row !== undefined)
        selection.value = new Map(loaded.map(row => [row.key, row]))
      }}
    />
  )
}

function toggled<Row extends Keyed>(selection: Selection<Row>, row: Row): Selection<Row> {
  const next = new Map(selection)
  if (!next.delete(row.key)) next.set(row.key, row)
  return next
}
