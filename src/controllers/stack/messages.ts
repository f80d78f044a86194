import { phaseOf, type Run, type RunFailureReason } from '../../api/index.ts'
import type { StatusCause } from '../../kubernetes/object/index.ts'
import { truncateText } from '../../kubernetes/util/index.ts'
import { maxQuotedChars } from './constants.ts'

type Counts = { add: number; change: number; destroy: number }

/** `3 added, 1 changed, 0 destroyed`. */
export function formatApplied({ add, change, destroy }: Counts): string {
  return `${add} added, ${change} changed, ${destroy} destroyed`
}

/** `3 to add, 1 to change, 0 to destroy`. A refresh removes from the state what no longer exists; it destroys nothing. */
export function formatPlanned({ add, change, destroy }: Counts, mode?: 'Refresh' | 'Destroy'): string {
  if (mode === 'Refresh') return `${add} to add, ${change} to change, ${destroy} to remove, only in the state`
  return `${add} to add, ${change} to change, ${destroy} to destroy`
}

/** `Run app-3f2a1-4 (Apply) is Queued: no worker is free`. */
export function formatActiveRun(run: Run): string {
  const phase = phaseOf(run)
  const pending = (phase === 'Queued' || phase === 'Assigned') && run.status?.message ? `: ${truncateMessage(run.status.message)}` : ''
  return `Run ${run.metadata.name} (${run.spec.type}) is ${phase}${pending}`
}

/** `Run app-3f2a1-4 failed: <message>`, without a full stop at the end. */
export function formatFailure(run: Run): string {
  const { message, reason } = run.status ?? {}
  const text = truncateMessage(message || reason || 'no message was reported').replace(/[.\s]+$/, '')
  return `Run ${run.metadata.name} failed: ${text}`
}

/** Why a Run failed, for a condition. One of a worker of another version may be unknown here. */
export function failureReason({ status }: Run, fallback: RunFailureReason = 'RunFailed'): RunFailureReason {
  return (status?.reason as RunFailureReason | undefined) ?? fallback
}

/** `10:31:05 UTC`. */
export function formatTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`
}

/** `2026-06-01 10:31:05 UTC`. */
export function formatDateTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 10)} ${formatTime(ms)}`
}

/** Engines report digests of 64 characters; 12 are enough to distinguish two of them. */
export function formatDigest(digest: string): string {
  return digest.length <= 24 ? digest : `${digest.slice(0, digest.indexOf(':') + 13)}…`
}

/** `spec.a: message; spec.b: message`. */
export function formatCauses(causes: readonly StatusCause[]): string {
  return truncateMessage(causes.map(({ field, message }) => `${field}: ${message}`).join('; '))
}

/** Truncates a message of a Run or an error to what a condition quotes of it. */
export function truncateMessage(text: string): string {
  return truncateText(text.trim(), maxQuotedChars)
}

const nextAttemptMark = '. Next attempt at '

/** At the end of a message. Milliseconds. */
export const formatNextAttempt = (atMs: number): string => `${nextAttemptMark}${formatTime(atMs)}`

/** A message without what {@link formatNextAttempt} added: it changes with every attempt. */
export const withoutNextAttempt = (message: string): string => message.split(nextAttemptMark, 1)[0]!
