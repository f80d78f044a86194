import { Badge } from '../parts/badge.tsx'

/** The name of an object with its state, and the sentence that explains it. */
export function ObjectHeader({
  namespace,
  name,
  state,
  lead,
}: {
  readonly namespace: string
  readonly name: string
  readonly state: string
  readonly lead: string
}) {
  return (
    <>
      <header class="page-header">
        <h1>
          <span class="namespace">{namespace}/</span>
          {name}
        </h1>
        <Badge value={state} />
      </header>
      <p class="lead" aria-live="polite">
        {lead}
      </p>
    </>
  )
}
