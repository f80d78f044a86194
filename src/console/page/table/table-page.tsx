import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { filterFields, phaseTones, type StackState, stateTones, type TableFacts, type TableKind } from '../../protocol/index.ts'
import { Empty } from '../parts/empty.tsx'
import { formatCount } from '../parts/format.ts'
import { Icon } from '../parts/icon.tsx'
import { State, spaced } from '../parts/state.tsx'
import { address, navigate, pageUrl } from '../router.ts'
import { isTyping } from '../shell/shortcuts.ts'
import { useChunks } from '../stream/use-chunks.ts'
import { type Column, chipFields, columnsOf } from './columns.tsx'
import { toggleValue, valuesOf } from './filter-text.ts'
import { VirtualTable } from './virtual-table.tsx'

/** Typing waits this long before the address, and with it the view, changes. */
const typingMs = 200

/** A list of objects of one kind. The filter and the order are in the address. */
export function TablePage({ kind, title }: { readonly kind: TableKind; readonly title: string }) {
  const { query } = address.value
  const filter = query.get('filter') ?? ''
  const sort = query.get('sort') ?? ''
  const range = useSignal({ first: 0, end: 1 })
  const chunks = useChunks({ kind, ...(filter && { filter }), ...(sort && { sort }) }, range.value.first, range.value.end)
  const loaded = [...chunks.values()].find(view => view.facts !== undefined)
  const error = [...chunks.values()].find(view => view.error)?.error
  const last = useRef<TableFacts>(undefined)
  if (loaded) last.current = loaded.facts
  const facts = last.current
  const show = (next: { filter?: string; sort?: string }, replace = false) =>
    navigate(pageUrl([kind], { filter, sort, ...next }), { replace })
  return (
    <div class="page table-page">
      <div class="page-head">
        <h1>{title}</h1>
        {/* Not a live region: the number changes all the time. */}
        <p class="count">
          {facts && (facts.total === facts.all ? formatCount(facts.all) : `${formatCount(facts.total)} of ${formatCount(facts.all)}`)}
        </p>
        <FilterField kind={kind} filter={filter} onFilter={text => show({ filter: text }, true)} />
      </div>
      {facts && <Chips kind={kind} facts={facts} filter={filter} onFilter={text => show({ filter: text })} />}
      {facts?.invalid !== undefined && (
        <p class="error" role="alert">
          {facts.invalid}
        </p>
      )}
      {error && (
        <p class="error" role="alert">
          {error.message}
        </p>
      )}
      {facts === undefined ? (
        <div class="loading" aria-busy="true" />
      ) : facts.total === 0 && facts.invalid === undefined ? (
        <NoRows kind={kind} title={title} isFiltered={filter !== ''} onClear={() => show({ filter: '' })} />
      ) : (
        <VirtualTable
          key={`${filter} ${sort}`}
          kind={kind}
          label={title}
          columns={columnsOf[kind] as readonly Column<never>[]}
          total={facts.total}
          sort={sort}
          chunks={chunks}
          onRange={(first, end) => {
            range.value = { first, end }
          }}
          onSort={field => show({ sort: sort === field ? `-${field}` : field })}
        />
      )}
    </div>
  )
}

type FilterProps = { readonly kind: TableKind; readonly filter: string; readonly onFilter: (text: string) => void }

function FilterField({ kind, filter, onFilter }: FilterProps) {
  const input = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = filter
  }, [filter])
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === 'Escape' && document.activeElement === input.current) input.current?.blur()
      if (event.key !== '/' || isTyping(event)) return
      event.preventDefault()
      input.current?.focus()
    }
    document.addEventListener('keydown', onKey)
    return () => {
      document.removeEventListener('keydown', onKey)
      clearTimeout(timer.current)
    }
  }, [])
  return (
    <div class="filter">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label="Filter"
        placeholder={`Filter: ${filterFields[kind]
          .slice(0, 3)
          .map(field => `${field}:…`)
          .join(' ')}`}
        spellcheck={false}
        autocomplete="off"
        defaultValue={filter}
        onInput={event => {
          const text = event.currentTarget.value
          clearTimeout(timer.current)
          timer.current = setTimeout(() => onFilter(text.trim()), typingMs)
        }}
      />
      <kbd>/</kbd>
    </div>
  )
}

function Chips({ kind, facts, filter, onFilter }: FilterProps & { readonly facts: TableFacts }) {
  const field = chipFields[kind]
  const counts = field === undefined ? undefined : facts.counts[field]
  if (field === undefined || counts === undefined) return null
  const chosen = valuesOf(filter, field, filterFields[kind])
  return (
    <fieldset class="chips">
      <legend class="visually-hidden">Filter by {field}</legend>
      {Object.entries(counts)
        .filter(([value]) => value !== '')
        .map(([value, count]) => (
          <button
            key={value}
            type="button"
            class="chip"
            aria-pressed={chosen.includes(value.toLowerCase())}
            onClick={() => onFilter(toggleValue(filter, field, value, filterFields[kind]))}
          >
            <State tone={kind === 'stacks' ? stateTones[value as StackState] : phaseTones[value]} text={spaced(value)} />
            <span class="count">{formatCount(count)}</span>
          </button>
        ))}
    </fieldset>
  )
}

type NoRowsProps = { readonly kind: TableKind; readonly title: string; readonly isFiltered: boolean; readonly onClear: () => void }

function NoRows({ kind, title, isFiltered, onClear }: NoRowsProps) {
  if (isFiltered)
    return (
      <Empty title={`No ${title.toLowerCase()} match this filter`}>
        <button type="button" class="button" onClick={onClear}>
          Remove the filter
        </button>
      </Empty>
    )
  if (kind === 'queue')
    return (
      <Empty title="No Run waits">
        <p>Runs appear here while they wait for a worker.</p>
      </Empty>
    )
  return (
    <Empty title={`There are no ${title.toLowerCase()}`}>
      {kind === 'stacks' && (
        <p>
          Create a Stack with <code>kubectl apply -f stack.yaml</code>; it appears here.
        </p>
      )}
    </Empty>
  )
}
