import { useState } from 'preact/hooks'
import { formatNumber } from '../../parts/format.ts'
import { visibleText } from '../../parts/visible-text.ts'

const shownCharacters = 600
const shownLines = 12

/** A text, of which a long one is shown as a whole when the user asks for it. @param name of what it is the value of. */
export function LongText({ name, text }: { readonly name: string; readonly text: string }) {
  const [isWhole, setIsWhole] = useState(false)
  if (text === '') return <code class="value">""</code>
  const start = text.slice(0, shownCharacters).split('\n', shownLines).join('\n')
  const isLong = start.length < text.length
  const label = isWhole ? 'Show less' : `Show all ${formatNumber(text.length)} characters`
  return (
    <>
      <code class="value">{visibleText(isWhole || !isLong ? text : `${start}…`)}</code>
      {isLong && (
        <button type="button" class="small" aria-expanded={isWhole} aria-label={`${label} of ${name}`} onClick={() => setIsWhole(!isWhole)}>
          {label}
        </button>
      )}
    </>
  )
}
