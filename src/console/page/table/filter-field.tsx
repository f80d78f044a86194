import { useSignal } from '@preact/signals'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import { parseFilter } from '../../protocol/index.ts'
import { formatNumber } from '../parts/format.ts'
import { useShortcuts } from '../parts/shortcuts.ts'
import { completionsOf } from './filter-text.ts'

const typingMs = 200

/** The field of a filter: `/` focuses it, and it completes names of fields and the values that rows have. */
export function FilterField({
  filter,
  fields,
  counts,
  invalid,
  onFilter,
}: {
  readonly filter: string
  readonly fields: readonly string[]
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>
  /** Why the server rejects the filter. */
  readonly invalid: string | undefined
  readonly onFilter: (filter: string) => void
}) {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const text = useSignal(filter)
  const isOpen = useSignal(false)
  const chosen = useSignal(-1)
  // The address changes elsewhere too: by the chips, saved views and the back button. After a paint it would replace what is typed since.
  useLayoutEffect(() => {
    if (document.activeElement !== input.current || timer.current === undefined) text.value = filter
  }, [filter])
  useEffect(() => () => clearTimeout(timer.current), [])
  useShortcuts({ '/': () => input.current?.focus() })

  const problem = problemOf(text.value, fields) ?? invalid
  const options = isOpen.value ? completionsOf(text.value, fields, counts) : []
  const send = (value: string) => {
    clearTimeout(timer.current)
    timer.current = undefined
    if (problemOf(value, fields) === undefined) onFilter(value.trim())
  }
  const change = (value: string) => {
    text.value = value
    chosen.value = -1
    clearTimeout(timer.current)
    timer.current = setTimeout(() => send(value), typingMs)
  }
  const choose = (value: string) => {
    change(value)
    isOpen.value = true
    input.current?.focus()
  }
  const pressed = (event: KeyboardEvent) => {
    const option = options[chosen.value]
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault()
      isOpen.value = true
      const step = event.key === 'ArrowDown' ? 1 : -1
      chosen.value = options.length === 0 ? -1 : (Math.max(chosen.value, step < 0 ? 0 : -1) + step + options.length) % options.length
    } else if ((event.key === 'Enter' || event.key === 'Tab') && option) {
      event.preventDefault()
      choose(option.text)
    } else if (event.key === 'Enter') {
      isOpen.value = false
      send(text.value)
      input.current?.blur()
    } else if (event.key === 'Escape') {
      if (isOpen.value && options.length > 0) isOpen.value = false
      else input.current?.blur()
    }
  }
  return (
    <search class="filter">
      <input
        ref={input}
        type="text"
        role="combobox"
        aria-label="Filter"
        aria-autocomplete="list"
        aria-expanded={options.length > 0}
        aria-controls={`${id}-list`}
        aria-activedescendant={chosen.value >= 0 ? `${id}-${chosen.value}` : undefined}
        aria-invalid={problem !== undefined && !isOpen.value}
        aria-describedby={`${id}-problem`}
        placeholder={`Words, or ${fields
          .slice(0, 3)
          .map(field => `${field}:`)
          .join(' ')}…`}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        value={text}
        onInput={event => {
          isOpen.value = true
          change(event.currentTarget.value)
        }}
        onFocus={() => {
          isOpen.value = true
        }}
        onBlur={() => {
          isOpen.value = false
          send(text.value)
        }}
        onKeyDown={pressed}
      />
      <kbd title="The key / focuses the filter">/</kbd>
      <div role="listbox" id={`${id}-list`} aria-label="Completions" hidden={options.length === 0}>
        {options.map((option, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the option
          <div
            key={option.label}
            role="option"
            id={`${id}-${index}`}
            aria-selected={index === chosen.value}
            onMouseDown={event => event.preventDefault()}
            onClick={() => choose(option.text)}
          >
            <span>{option.label}</span>
            {option.count !== undefined && <span class="count">{formatNumber(option.count)}</span>}
          </div>
        ))}
      </div>
      <p class="problem" id={`${id}-problem`} aria-live="polite">
        {problem !== undefined && !isOpen.value ? problem : ''}
      </p>
    </search>
  )
}

function problemOf(text: string, fields: readonly string[]): string | undefined {
  try {
    parseFilter(text, fields)
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}
