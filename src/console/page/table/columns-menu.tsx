import type { Signal } from '@preact/signals'
import { Menu } from '../parts/menu.tsx'
import type { Column } from './column.ts'

/** The ids of the columns that are shown; undefined: those that are not optional. */
export type ChosenColumns = readonly string[] | undefined

export function ColumnsMenu({ columns, chosen }: { readonly columns: readonly Column<never>[]; readonly chosen: Signal<ChosenColumns> }) {
  const shown = new Set(chosen.value ?? columns.filter(({ isOptional }) => !isOptional).map(({ id }) => id))
  return (
    <Menu label="Columns" icon="columns">
      <fieldset>
        <legend>Columns</legend>
        {columns.slice(1).map(({ id, label }) => (
          <label key={id}>
            <input
              type="checkbox"
              checked={shown.has(id)}
              onChange={({ currentTarget }) => {
                if (currentTarget.checked) shown.add(id)
                else shown.delete(id)
                chosen.value = columns.filter(column => shown.has(column.id)).map(column => column.id)
              }}
            />
            {label}
          </label>
        ))}
        <button
          type="button"
          class="quiet"
          onClick={() => {
            chosen.value = undefined
          }}
        >
          Default columns
        </button>
      </fieldset>
    </Menu>
  )
}

/** The first column, which has the link, is always shown. */
export function shownColumns<Row>(columns: readonly Column<Row>[], chosen: ChosenColumns): readonly Column<Row>[] {
  return columns.filter(({ id, isOptional }, index) => index === 0 || (chosen ? chosen.includes(id) : !isOptional))
}
