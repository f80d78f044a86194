import { toneOf } from '../parts/badge.tsx'
import { formatNumber, formatWords } from '../parts/format.ts'
import { toggleValue, valuesOf } from './filter-text.ts'

/** The values of a field with their counts. A click adds one to the filter, or removes it. */
export function FacetChips({
  field,
  counts,
  filter,
  onFilter,
}: {
  readonly field: string
  readonly counts: Readonly<Record<string, number>>
  readonly filter: string
  readonly onFilter: (filter: string) => void
}) {
  const chosen = valuesOf(filter, field)
  // What is chosen stays visible when no row has it any more.
  const missing = chosen.filter(value => !Object.keys(counts).some(name => name.toLowerCase() === value))
  const values = [...Object.entries(counts), ...missing.map(value => [value, 0] as const)]
  if (values.length === 0) return null
  return (
    <fieldset class="chips">
      <legend class="hidden">{`Filter by ${field}`}</legend>
      {values.map(([value, count]) => (
        <button
          key={value.toLowerCase()}
          type="button"
          class={`chip ${toneOf(value)}`}
          aria-pressed={chosen.includes(value.toLowerCase())}
          onClick={() => onFilter(toggleValue(filter, field, value))}
        >
          <span class="dot" aria-hidden="true" />
          {formatWords(value)} <span class="count">{formatNumber(count)}</span>
        </button>
      ))}
    </fieldset>
  )
}
