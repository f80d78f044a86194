import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { BulkRequest, StackRow } from '../../protocol/index.ts'
import { formatCount, formatNumber } from '../parts/format.ts'
import { lazy } from '../parts/lazy.tsx'
import { currentSession } from '../session.ts'
import type { BulkProps } from './table-page.tsx'

export type BulkAction = BulkRequest['action']

export const bulkLabels: Readonly<Record<BulkAction, string>> = {
  run: 'Run',
  cancel: 'Cancel',
  suspend: 'Suspend',
  resume: 'Resume',
}

const BulkDialog = lazy(async () => (await import('./bulk-dialog.tsx')).BulkDialog)

/** The bar below the table while Stacks are selected: some of them, or all that match the filter. */
export function BulkActions({ selection, filter, total }: BulkProps<StackRow>) {
  const isAll = useSignal(false)
  const action = useSignal<BulkAction | undefined>(undefined)
  useEffect(() => {
    isAll.value = false
  }, [filter])
  const selected = selection.value
  if (selected.size === 0) return null
  const { readOnly } = currentSession()
  const rows = [...selected.values()]
  const count = isAll.value ? total : rows.length
  const why = readOnly ? 'the console is read-only' : undefined
  return (
    <section class="bulk" aria-label="Selection">
      <p aria-live="polite">
        {isAll.value ? `All ${formatNumber(total)} that match are selected` : `${formatCount(count, 'Stack')} selected`}
      </p>
      {!isAll.value && total > rows.length && (
        <button
          type="button"
          class="quiet"
          onClick={() => {
            isAll.value = true
          }}
        >
          Select all {formatNumber(total)}
        </button>
      )}
      <span class="bulk-buttons">
        {(Object.keys(bulkLabels) as BulkAction[]).map(name => (
          <button
            key={name}
            type="button"
            aria-disabled={why !== undefined}
            title={why}
            onClick={() => {
              if (why === undefined) action.value = name
            }}
          >
            {bulkLabels[name]}
            {why !== undefined && <span class="hidden">: {why}</span>}
          </button>
        ))}
      </span>
      <button
        type="button"
        class="quiet"
        onClick={() => {
          selection.value = new Map()
          isAll.value = false
        }}
      >
        Clear
      </button>
      {action.value && (
        <BulkDialog
          action={action.value}
          rows={rows}
          filter={isAll.value ? filter : undefined}
          count={count}
          onClose={() => {
            action.value = undefined
          }}
        />
      )}
    </section>
  )
}
