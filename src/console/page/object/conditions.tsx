import { Badge } from '../parts/badge.tsx'
import { Age } from '../parts/time.tsx'

type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

/** Types whose status True is a problem, or asks for a user. */
const negative = new Set(['Stalled', 'AwaitingApproval', 'Drifted'])

export function Conditions({ object }: { readonly object: unknown }) {
  const conditions = (object as { status?: { conditions?: readonly Condition[] } } | undefined)?.status?.conditions ?? []
  if (conditions.length === 0) return <p class="hint">No condition is set yet.</p>
  return (
    <ul class="plain conditions">
      {conditions.map(({ type, status, reason, message, lastTransitionTime }) => (
        <li key={type}>
          <Badge value={type} tone={toneOf(type, status)} />
          <span class="status">{status}</span>
          <span>
            {reason && <strong>{reason}</strong>} {message}
          </span>
          <span class="number dim">{lastTransitionTime && <Age ms={Date.parse(lastTransitionTime)} />}</span>
        </li>
      ))}
    </ul>
  )
}

function toneOf(type: string, status: string) {
  if (status === 'Unknown' || type === 'Reconciling') return status === 'True' ? 'busy' : 'idle'
  if (negative.has(type)) return status === 'True' ? 'attention' : 'idle'
  return status === 'True' ? 'good' : 'bad'
}
