import { type PlanCounts, phaseTones, type StackRow, stateTones, type Tone } from '../../protocol/index.ts'
import { formatNumber, formatWords } from './format.ts'

/** The tone of a state of a Stack, or of a phase of a Run or a Worker. */
export const toneOf = (value: string): Tone =>
  (stateTones as Readonly<Record<string, Tone>>)[value] ?? phaseTones[value] ?? workerTones[value] ?? 'idle'

const workerTones: Readonly<Record<string, Tone>> = { Starting: 'busy', Busy: 'busy', Draining: 'attention' }

/** A state in words, with a mark whose shape and colour follow its tone. */
export function Badge({ value, tone = toneOf(value) }: { readonly value: string; readonly tone?: Tone }) {
  return (
    <span class={`badge ${tone}`}>
      <Mark tone={tone} />
      {formatWords(value)}
    </span>
  )
}

/** Shapes differ too: colours alone do not reach everyone. */
const shapes: Readonly<Record<Tone, string>> = {
  good: 'M2.5 6.5 5 9l4.5-6',
  bad: 'M3 3l6 6M9 3l-6 6',
  attention: 'M6 2.5v4M6 9.2v.3',
  busy: 'M6 2a4 4 0 1 1-4 4',
  idle: 'M3 6h6',
}

function Mark({ tone }: { readonly tone: Tone }) {
  return (
    <svg class="mark" viewBox="0 0 12 12" aria-hidden="true">
      <path d={shapes[tone]} />
    </svg>
  )
}

/** Whether a Stack is suspended although its state is another one, such as Ready. */
export const isSuspendedToo = ({ suspended, state }: StackRow): boolean => suspended && state !== 'Suspended'

/** What a plan adds, changes and destroys. */
export function PlanChanges({
  plan: { add, change, destroy },
  format = formatNumber,
}: {
  readonly plan: PlanCounts
  readonly format?: (count: number) => string
}) {
  return (
    <span class="plan" title={`${add} to add, ${change} to change, ${destroy} to destroy`}>
      <span class={add > 0 ? 'add' : 'none'}>+{format(add)}</span> <span class={change > 0 ? 'change' : 'none'}>~{format(change)}</span>{' '}
      <span class={destroy > 0 ? 'destroy' : 'none'}>−{format(destroy)}</span>
    </span>
  )
}

export function Progress({ done, total }: { readonly done: number; readonly total: number }) {
  return (
    <span class="progress">
      <progress value={done} max={Math.max(1, total)} aria-label={`${done} of ${total} resources`} />
      <span>
        {formatNumber(done)}/{formatNumber(total)}
      </span>
    </span>
  )
}
