/**
 * The annotations of a managed resource. Names and values are Crossplane's (crossplane-runtime v2, pkg/meta), so that a provider can be
 * rewritten without touching its users' objects. Times are RFC 3339 with milliseconds, which Crossplane parses too.
 */
import { parseDuration } from '../../kubernetes/object/index.ts'

export const annotations = {
  externalName: 'crossplane.io/external-name',
  createPending: 'crossplane.io/external-create-pending',
  createSucceeded: 'crossplane.io/external-create-succeeded',
  createFailed: 'crossplane.io/external-create-failed',
  paused: 'crossplane.io/paused',
  pollInterval: 'crossplane.io/poll-interval',
  reconcileRequestedAt: 'crossplane.io/reconcile-requested-at',
  /** Ours: the fence of the owner that marked the creation as pending. */
  createFence: 'oarlock.dev/external-create-fence',
} as const

type Annotated = { metadata: { annotations?: Record<string, string> | undefined } }

export function externalNameOf({ metadata }: Annotated): string | undefined {
  return metadata.annotations?.[annotations.externalName] || undefined
}

export function isPausedByAnnotation({ metadata }: Annotated): boolean {
  return metadata.annotations?.[annotations.paused] === 'true'
}

/** A request to reconcile now: a token that is new when it differs from the one in `status.lastHandledReconcileAt`. */
export function requestTokenOf({ metadata }: Annotated): string | undefined {
  return metadata.annotations?.[annotations.reconcileRequestedAt] || undefined
}

export type CreateTimes = { readonly pendingMs: number; readonly succeededMs: number; readonly failedMs: number }

/** The last instant that a Date can hold: an annotation may be of any time. */
const latestDateMs = 8.64e15
/** A result with a later time is ignored: no pending mark could be newer, and no creation be seen as incomplete. */
const latestResultMs = Date.UTC(9000, 0)

/** When a creation was last marked; negative infinity for never, or for text that is not a time. */
export function createTimesOf({ metadata }: Annotated): CreateTimes {
  const timeOf = (name: string, latestMs: number) => {
    const ms = Date.parse(metadata.annotations?.[name] ?? '')
    return ms <= latestMs ? ms : Number.NEGATIVE_INFINITY
  }
  return {
    pendingMs: timeOf(annotations.createPending, latestDateMs),
    succeededMs: timeOf(annotations.createSucceeded, latestResultMs),
    failedMs: timeOf(annotations.createFailed, latestResultMs),
  }
}

/** Whether a creation was begun and its result is not known: it may have made an external resource that no object names. */
export function isCreationIncomplete(times: CreateTimes): boolean {
  return times.pendingMs > Math.max(times.succeededMs, times.failedMs)
}

/** The time to write for a mark: later than every earlier one, also when the clock went back or writers' clocks differ. */
export function nextMark({ pendingMs, succeededMs, failedMs }: CreateTimes, nowMs: number): string {
  return new Date(Math.min(Math.max(nowMs, pendingMs + 1, succeededMs + 1, failedMs + 1), latestDateMs)).toISOString()
}

/** The poll interval of an object: its annotation if that is a duration, at least `minimumMs`; else `defaultMs`. */
export function pollIntervalOf({ metadata }: Annotated, { defaultMs, minimumMs }: { defaultMs: number; minimumMs: number }): number {
  const text = metadata.annotations?.[annotations.pollInterval]
  if (!text) return defaultMs
  try {
    const ms = parseDuration(text)
    return ms > 0 ? Math.max(ms, minimumMs) : defaultMs
  } catch {
    return defaultMs
  }
}
