import type { ComponentChildren } from 'preact'
import { Badge } from '../parts/badge.tsx'
import { visibleText } from '../parts/visible-text.ts'

/** The name of an object with its state, and the sentence that explains it. */
export function ObjectHeader({
  namespace,
  name,
  state,
  lead,
  children,
}: {
  readonly namespace: string
  readonly name: string
  readonly state: string
  readonly lead: string
  /** Beside the state. */
  readonly children?: ComponentChildren
}) {
  return (
    <>
      <header class="page-header">
        <h1>
          <span class="namespace">{namespace}/</span>
          {name}
        </h1>
        <Badge value={state} />
        {children}
      </header>
      <p class="lead" aria-live="polite">
        {visibleText(lead)}
      </p>
    </>
  )
}
