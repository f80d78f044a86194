import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { RowOf, TableKind } from '../../protocol/index.ts'
import { Icon } from '../parts/icon.tsx'
import { navigate, pageUrl } from '../router.ts'
import { isTyping } from '../shell/shortcuts.ts'
import { chunkRows } from '../stream/use-chunks.ts'
import type { View } from '../stream/use-view.ts'
import type { Column } from './columns.tsx'
import { visibleRows } from './visible-rows.ts'

type Row = RowOf[TableKind]
/** Heights in pixels; styles/table.css has them too. */
const rowPx = { table: 36, cards: 88 }
const phone = matchMedia('(max-width: 720px)')

type Props = {
  readonly kind: TableKind
  readonly label: string
  readonly columns: readonly Column<never>[]
  readonly total: number
  readonly sort: string
  readonly chunks: ReadonlyMap<number, View<TableKind>>
  readonly onRange: (first: number, end: number) => void
  readonly onSort: (field: string) => void
}

/** Renders the rows that are visible of a table of any length. On a phone every row is a card. */
export function VirtualTable({ kind, label, columns, total, sort, chunks, onRange, onSort }: Props) {
  const scroller = useRef<HTMLDivElement>(null)
  const isPhone = useSignal(phone.matches)
  const heightPx = isPhone.value ? rowPx.cards : rowPx.table
  const range = useSignal({ first: 0, end: Math.min(total, 30) })
  const cursor = useSignal(0)
  const measure = () => {
    const element = scroller.current
    if (!element) return
    const next = visibleRows(element.scrollTop, element.clientHeight, heightPx, total)
    if (next.first === range.value.first && next.end === range.value.end) return
    range.value = next
    onRange(next.first, next.end)
  }
  useLayoutEffect(measure, [total, heightPx])
  useEffect(() => {
    const onMedia = () => {
      isPhone.value = phone.matches
    }
    phone.addEventListener('change', onMedia)
    const observer = new ResizeObserver(measure)
    observer.observe(scroller.current!)
    return () => {
      phone.removeEventListener('change', onMedia)
      observer.disconnect()
    }
  }, [total, heightPx])
  const rowAt = (index: number): Signal<Row> | undefined => {
    const chunk = chunks.get(Math.floor(index / chunkRows))
    const key = chunk?.order[index % chunkRows]
    return key === undefined ? undefined : chunk?.row(key)
  }
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (isTyping(event) || (event.key !== 'j' && event.key !== 'k')) return
      cursor.value = Math.max(0, Math.min(total - 1, cursor.value + (event.key === 'j' ? 1 : -1)))
      const element = scroller.current!
      const top = cursor.value * heightPx
      if (top < element.scrollTop) element.scrollTop = top
      else if (top + 2 * heightPx > element.scrollTop + element.clientHeight) element.scrollTop = top + 2 * heightPx - element.clientHeight
      measure()
      requestAnimationFrame(() =>
        element.querySelector<HTMLElement>(`[aria-rowindex="${cursor.value + 2}"]`)?.focus({ preventScroll: true }),
      )
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [total, heightPx])
  const { first, end } = range.value
  const indexes = Array.from({ length: Math.max(0, Math.min(end, total) - first) }, (_, i) => first + i)
  return (
    <div class="scroller" ref={scroller} onScroll={measure}>
      {/* biome-ignore lint/a11y/useSemanticElements: a table element cannot leave out rows */}
      <div
        class="grid"
        role="grid"
        aria-label={label}
        aria-rowcount={total + 1}
        style={{ '--columns': columns.map(({ width }) => width).join(' ') } as Record<string, string>}
      >
        {/* biome-ignore lint/a11y/useSemanticElements: as above */}
        {/* biome-ignore lint/a11y/useFocusableInteractive: its buttons have the focus */}
        <div class="head" role="row" aria-rowindex={1}>
          {columns.map(column => (
            <ColumnHead key={column.title} column={column} sort={sort} onSort={onSort} />
          ))}
        </div>
        {/* biome-ignore lint/a11y/useSemanticElements: as above */}
        <div class="body" role="rowgroup" style={{ height: `${total * heightPx}px` }}>
          <div class="rows" role="presentation" style={{ transform: `translateY(${first * heightPx}px)` }}>
            {indexes.map(index => {
              const row = rowAt(index)
              return row ? (
                <TableRow key={row.peek().key} kind={kind} index={index} row={row} columns={columns} isCurrent={index === cursor.value} />
              ) : (
                <div key={`empty ${index}`} class="row placeholder" role="presentation" />
              )
            })}
          </div>
        </div>
      </div>
    </div>
  )
}

type HeadProps = { readonly column: Column<never>; readonly sort: string; readonly onSort: (field: string) => void }

function ColumnHead({ column: { title, sort: field, align }, sort, onSort }: HeadProps) {
  const isSorted = field !== undefined && sort.replace(/^-/, '') === field
  const direction = isSorted ? (sort.startsWith('-') ? 'descending' : 'ascending') : undefined
  return (
    // biome-ignore lint/a11y/useSemanticElements: as above
    // biome-ignore lint/a11y/useFocusableInteractive: its button has the focus
    <div class={align ?? ''} role="columnheader" aria-sort={direction}>
      {field === undefined ? (
        title
      ) : (
        <button type="button" onClick={() => onSort(field)}>
          {title}
          {direction && <Icon name={direction === 'ascending' ? 'up' : 'down'} />}
        </button>
      )}
    </div>
  )
}

type RowProps = {
  readonly kind: TableKind
  readonly index: number
  readonly row: Signal<Row>
  readonly columns: readonly Column<never>[]
  readonly isCurrent: boolean
}

/** Renders again when its row changes, and not when others do. */
function TableRow({ kind, index, row, columns, isCurrent }: RowProps) {
  const value = row.value
  const url = urlOf(kind, value)
  return (
    // biome-ignore lint/a11y/useSemanticElements: as above
    <div
      class="row"
      role="row"
      aria-rowindex={index + 2}
      tabIndex={isCurrent ? 0 : -1}
      onKeyDown={event => event.key === 'Enter' && url !== undefined && navigate(url)}
    >
      {columns.map(({ title, align, cell }, i) => (
        // biome-ignore lint/a11y/useSemanticElements: as above
        // biome-ignore lint/a11y/useFocusableInteractive: its row has the focus
        <div key={title} class={align ?? ''} role="gridcell" data-title={title}>
          {i === 0 && url !== undefined ? <a href={url}>{cell(value as never)}</a> : cell(value as never)}
        </div>
      ))}
    </div>
  )
}

function urlOf(kind: TableKind, row: Row): string | undefined {
  if (!('namespace' in row)) return undefined
  return pageUrl([kind === 'stacks' ? 'stacks' : 'runs', row.namespace, row.name])
}
