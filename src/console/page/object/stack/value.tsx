import type { ShownValue } from '../../../protocol/index.ts'
import { visibleText } from '../../parts/visible-text.ts'

/** A JSON value, or that it is hidden. */
export function Value({ shown }: { readonly shown: ShownValue | undefined }) {
  if (shown === undefined) return <span class="nothing">–</span>
  if ('hidden' in shown) return <span class="tag">hidden</span>
  const { value } = shown
  const text = typeof value === 'string' ? value : JSON.stringify(value, null, typeof value === 'object' ? 2 : undefined)
  return <code class="value">{text === '' ? '""' : visibleText(text)}</code>
}
