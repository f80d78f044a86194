import { Badge } from '../parts/badge.tsx'
import { formatWords } from '../parts/format.ts'
import { Age } from '../parts/time.tsx'
import { visibleText } from '../parts/visible-text.ts'

export type Condition = {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

/** What a condition says of a Stack, by its type and status. */
export const stackSentences: Readonly<Record<string, string>> = {
  'Ready True': 'The current source and inputs are applied.',
  'Ready False': 'It is not as its source and inputs require.',
  'Ready Unknown': 'It is not known whether it is as its source and inputs require.',
  'Reconciling True': 'Work on it is in progress.',
  'Stalled True': 'It waits for a change by a user.',
  'AwaitingApproval True': 'A plan waits for a user who approves or confirms it.',
  'Drifted True': 'Its resources are not as they were applied.',
  'Drifted False': 'Its resources were as they were applied when they were compared last.',
  'Drifted Unknown': 'It is not known whether its resources are as they were applied.',
}

/** Types whose status True is a problem, or asks for a user. */
const negative = new Set(['Stalled', 'AwaitingApproval', 'Drifted'])

export const conditionsOf = (object: unknown): readonly Condition[] =>
  (object as { status?: { conditions?: readonly Condition[] } } | undefined)?.status?.conditions ?? []

/** @param sentences begin what a condition says, by its type and status. Others say their message only. */
export function Conditions({
  object,
  sentences = {},
}: {
  readonly object: unknown
  readonly sentences?: Readonly<Record<string, string>>
}) {
  const conditions = conditionsOf(object)
  // Ready has the message of the condition that explains it.
  const isRepeated = (type: string, message = '') =>
    type === 'Ready' && conditions.some(other => other.type !== 'Ready' && other.message === message)
  if (conditions.length === 0) return <p class="hint">No condition is set yet.</p>
  return (
    <ul class="plain conditions">
      {conditions.map(({ type, status, reason, message, lastTransitionTime }) => (
        <li key={type}>
          <Badge value={status === 'True' ? type : status === 'False' ? `Not${type}` : `${type}?`} tone={toneOf(type, status)} />
          <span>
            {sentences[`${type} ${status}`]} {!isRepeated(type, message) && <span>{visibleText(message ?? '')}</span>}{' '}
            {reason && reason !== type && <span class="tag">{formatWords(reason)}</span>}
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
