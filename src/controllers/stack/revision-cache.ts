import { setTimeout as sleep } from 'node:timers/promises'
import { defaults, type Stack } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { exponentialDelayMs } from '../../kubernetes/util/index.ts'
import type { RevisionError, StackInput } from './decision.ts'

export type RevisionCacheOptions = {
  resolve(stack: Stack): Promise<string>
  /** Called with a Stack whose lookup has ended: its revision may have changed, and the next lookup must be scheduled. */
  onResolved(stack: Stack): void
  nowMs(): number
  /** Maximum number of concurrent lookups; default 8. */
  maxConcurrent?: number
}

type CachedRevision = {
  source: string
  revision: StackInput['revision']
  resolvedAtMs: number
  failures: number
  isResolving: boolean
  lookup: Promise<void> | undefined
  /** The last request for a Run that caused a lookup. */
  request: string | undefined
}

const retryBackoff = { minMs: 5_000, maxMs: 300_000 }

/**
 * Caches the revision of each Stack's source and resolves it again at its interval. A slow repository does not block a
 * reconcile: its result triggers another one.
 */
export class RevisionCache {
  readonly #options: RevisionCacheOptions
  readonly #entries = new Map<string, CachedRevision>()
  readonly #queue: (() => void)[] = []
  #active = 0

  constructor(options: RevisionCacheOptions) {
    this.#options = options
  }

  /**
   * Returns the cached revision, and starts a lookup where one is due. `request` is a request for a Run: a user who requests
   * one has usually just pushed, so a new request discards the cached revision.
   */
  get(stack: Stack, request: string | undefined): { revision: StackInput['revision']; recheckAfterMs?: number } {
    const { uid } = stack.metadata
    const source = JSON.stringify(stack.spec.source)
    let entry = this.#entries.get(uid)
    if (entry?.source !== source) {
      entry = { source, revision: undefined, resolvedAtMs: 0, failures: 0, isResolving: false, lookup: undefined, request }
      this.#entries.set(uid, entry)
      this.#startLookup(stack, entry)
      return { revision: entry.revision }
    }
    const isMutable = stack.spec.source.inline === undefined && stack.spec.source.git?.commit === undefined
    if (request !== undefined && request !== entry.request && isMutable) {
      entry.request = request
      entry.revision = undefined
      if (!entry.isResolving) this.#startLookup(stack, entry)
    }
    if (entry.isResolving) return { revision: entry.revision }
    const intervalMs = this.#intervalMs(stack, entry, isMutable)
    if (intervalMs === undefined) return { revision: entry.revision }
    const recheckAfterMs = entry.resolvedAtMs + intervalMs - this.#options.nowMs()
    if (recheckAfterMs > 0) return { revision: entry.revision, recheckAfterMs }
    this.#startLookup(stack, entry)
    return { revision: entry.revision }
  }

  /** Resolves when the lookup in progress has ended, after `timeoutMs` at the latest. */
  async waitForLookup(uid: string, timeoutMs: number): Promise<void> {
    const lookup = this.#entries.get(uid)?.lookup
    if (!lookup) return
    const abort = new AbortController()
    await Promise.race([lookup, sleep(timeoutMs, undefined, { signal: abort.signal }).catch(() => {})])
    abort.abort()
  }

  /** Removes the entry of a deleted Stack. */
  delete(uid: string): void {
    this.#entries.delete(uid)
  }

  #intervalMs(stack: Stack, { revision, failures }: CachedRevision, isMutable: boolean): number | undefined {
    if (typeof revision !== 'object' && !isMutable) return undefined
    const intervalMs = Math.max(1_000, parseDuration(stack.spec.source.interval ?? defaults.sourceInterval))
    if (typeof revision !== 'object') return intervalMs
    if (!revision.error.retryable) return Math.max(intervalMs, 60_000)
    return exponentialDelayMs(failures, retryBackoff)
  }

  #startLookup(stack: Stack, entry: CachedRevision): void {
    entry.isResolving = true
    entry.lookup = this.#resolve(stack, entry)
  }

  async #resolve(stack: Stack, entry: CachedRevision): Promise<void> {
    const { maxConcurrent = 8, nowMs, resolve, onResolved } = this.#options
    // Inline sources need no network, so they do not queue behind slow repositories.
    const isQueued = stack.spec.source.inline === undefined
    if (isQueued && this.#active >= maxConcurrent) await new Promise<void>(start => this.#queue.push(start))
    if (isQueued) this.#active++
    const previous = JSON.stringify(entry.revision)
    try {
      entry.revision = await resolve(stack)
      entry.failures = 0
    } catch (thrown) {
      entry.revision = { error: revisionError(thrown) }
      entry.failures++
    }
    if (isQueued) {
      this.#active--
      this.#queue.shift()?.()
    }
    entry.isResolving = false
    entry.resolvedAtMs = nowMs()
    // Also with an unchanged revision: the reconcile schedules the next lookup.
    if (this.#entries.get(stack.metadata.uid) === entry || JSON.stringify(entry.revision) !== previous) onResolved(stack)
  }
}

/** Recognizes `SourceError` of `execution/workspace/` by its shape, because this module must not import it. Any other error is retryable. */
function revisionError(thrown: unknown): RevisionError {
  const { reason, message, retryable } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<RevisionError>
  if (typeof reason === 'string' && typeof retryable === 'boolean') return { reason, message: message ?? reason, retryable }
  return { reason: 'SourceUnavailable', message: message ?? String(thrown), retryable: true }
}
