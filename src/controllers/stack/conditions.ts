import type { Run, StackStatus } from '../../api/index.ts'
import { type Condition, findCondition, setCondition } from '../../kubernetes/object/index.ts'
import { quotedChars } from './limits.ts'
import { phaseOf } from './run-facts.ts'

export type StackEvent = { type: 'Normal' | 'Warning'; reason: string; message: string }

type Word = { readonly reason: string; readonly message: string }

/** What the conditions of a Stack say, kstatus' way: what is absent here is absent there. */
export type ConditionUpdate = {
  readonly ready: Word & { readonly status: 'True' | 'False' }
  readonly reconciling?: Word
  readonly stalled?: Word
  readonly awaitingApproval?: Word
}

export function readyCondition(reason: string, message: string): ConditionUpdate {
  return { ready: { status: 'True', reason, message } }
}

/** Not Ready, and Oarlock goes on by itself. */
export function reconcilingCondition(reason: string, message: string): ConditionUpdate {
  return { ready: { status: 'False', reason, message }, reconciling: { reason, message } }
}

/** Not Ready, and nothing gets better until somebody changes something. */
export function stalledCondition(reason: string, message: string): ConditionUpdate {
  return { ready: { status: 'False', reason, message }, stalled: { reason, message } }
}

/** Not Ready, on purpose. */
export function pausedCondition(reason: string, message: string): ConditionUpdate {
  return { ready: { status: 'False', reason, message } }
}

const owned = ['Ready', 'Reconciling', 'Stalled', 'AwaitingApproval'] as const

/** Puts what is said into the conditions of `status`, and returns the events that tell of the transitions. */
export function setConditions(
  status: StackStatus,
  say: ConditionUpdate,
  generation: number,
  nowMs: number,
): { conditions: Condition[]; events: StackEvent[] } {
  const before = status.conditions
  const words: Record<(typeof owned)[number], (Word & { status: 'True' | 'False' }) | undefined> = {
    Ready: say.ready,
    Reconciling: say.reconciling && { status: 'True', ...say.reconciling },
    Stalled: say.stalled && { status: 'True', ...say.stalled },
    AwaitingApproval: say.awaitingApproval && { status: 'True', ...say.awaitingApproval },
  }
  let conditions: Condition[] = before ?? []
  for (const type of owned) {
    const word = words[type]
    if (word) conditions = setCondition(conditions, { type, ...word, observedGeneration: generation }, nowMs)
    else conditions = conditions.filter(condition => condition.type !== type)
  }
  conditions = conditions.map(condition =>
    condition.observedGeneration === generation ? condition : { ...condition, observedGeneration: generation },
  )

  const events: StackEvent[] = []
  const isNews = (type: string, word: Word) => {
    const old = findCondition(before, type)
    return old?.status !== 'True' || old.reason !== word.reason || old.message !== word.message
  }
  if (say.stalled && isNews('Stalled', say.stalled)) events.push({ type: 'Warning', ...say.stalled })
  if (say.awaitingApproval && isNews('AwaitingApproval', say.awaitingApproval)) events.push({ type: 'Normal', ...say.awaitingApproval })
  if (say.reconciling && waitingReasons.has(say.reconciling.reason) && isNews('Reconciling', say.reconciling)) {
    events.push({ type: 'Warning', ...say.reconciling })
  }
  return { conditions, events }
}

// Waits that a person may have to end. The others (a Run in progress, a retry) have events of their own.
const waitingReasons = new Set(['DependencyNotFound', 'InputNotFound', 'SourceUnavailable', 'DependentsExist'])

/** `3 added, 1 changed, 0 destroyed`. */
export function formatDone({ add, change, destroy }: { add: number; change: number; destroy: number }): string {
  return `${add} added, ${change} changed, ${destroy} destroyed`
}

/** `3 to add, 1 to change, 0 to destroy`. */
export function formatPlanned({ add, change, destroy }: { add: number; change: number; destroy: number }): string {
  return `${add} to add, ${change} to change, ${destroy} to destroy`
}

/** `Run app-3f2a1-4 (Apply) is Queued: no worker is free`. */
export function formatActive(run: Run): string {
  const phase = phaseOf(run)
  const why = (phase === 'Queued' || phase === 'Assigned') && run.status?.message ? `: ${quote(run.status.message)}` : ''
  return `Run ${run.metadata.name} (${run.spec.type}) is ${phase}${why}`
}

/** `Run app-3f2a1-4 failed: <message>`, ending in a full stop. */
export function formatFailed(run: Run): string {
  const { message, reason } = run.status ?? {}
  const text = quote(message || reason || 'it gave no message').replace(/[.\s]+$/, '')
  return `Run ${run.metadata.name} failed: ${text}.`
}

/** `10:31:05 UTC`. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`
}

/** Engines give digests of 64 characters; 12 are enough to tell two apart. */
export function formatDigest(digest: string): string {
  return digest.length <= 24 ? digest : `${digest.slice(0, digest.indexOf(':') + 13)}…`
}

export function quote(text: string): string {
  const trimmed = text.trim()
  return trimmed.length <= quotedChars ? trimmed : `${trimmed.slice(0, quotedChars)}…`
}
