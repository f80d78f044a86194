import { setTimeout as sleep } from 'node:timers/promises'
import { defaults, type Stack } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { exponentialDelayMs } from '../../kubernetes/util/index.ts'
import type { RevisionError, StackInput } from './decision.ts'
import { usesCurrentSource } from './destruction.ts'
import { isPersistent } from './persistent-failure.ts'

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
  failingSinceMs: number
  isResolving: boolean
  /** The lookup in progress began before the last request: its result may be older. */
  isOutdated: boolean
  lookup: Promise<void> | undefined
  /** The last request for a Run that caused a lookup. */
  request: string | undefined
  /** Whether its user has requested to destroy with the present source. */
  isForDestruction: boolean
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
   * one has usually just pushed, so a new request discards the cached revision. So does the request to destroy with the present source.
   */
  get(stack: Stack, request: string | undefined): { revision: StackInput['revision']; recheckAfterMs?: number } {
    const { uid } = stack.metadata
    const source = JSON.stringify(stack.spec.source)
    const isForDestruction = usesCurrentSource(stack)
    let entry = this.#entries.get(uid)
    if (entry?.source !== source) {
      entry = {
        source,
        revision: undefined,
        resolvedAtMs: 0,
        failures: 0,
        failingSinceMs: 0,
        isResolving: false,
        isOutdated: false,
        lookup: undefined,
        request,
        isForDestruction,
      }
      this.#entries.set(uid, entry)
      this.#startLookup(stack, entry)
      return { revision: entry.revision }
    }
    const isMutable = stack.spec.source.inline === undefined && stack.spec.source.git?.commit === undefined
    const isRequested = (request !== undefined && request !== entry.request) || (isForDestruction && !entry.isForDestruction)
    entry.isForDestruction = isForDestruction
    if (isRequested && isMutable) {
      entry.request = request ?? entry.request
      entry.revision = undefined
      if (entry.isResolving) entry.isOutdated = true
      else this.#startLookup(stack, entry)
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
    const { maxConcurrent = 8, nowMs, onResolved } = this.#options
    // Inline sources need no network, so they do not queue behind slow repositories.
    const isQueued = stack.spec.source.inline === undefined
    if (isQueued && this.#active >= maxConcurrent) await new Promise<void>(start => this.#queue.push(start))
    if (isQueued) this.#active++
    const previous = JSON.stringify(entry.revision)
    try {
      entry.revision = await this.#lookUp(stack, entry)
      entry.failures = 0
    } catch (thrown) {
      const lastMs = nowMs()
      if (entry.failures++ === 0) entry.failingSinceMs = lastMs
      const error = revisionError(thrown)
      const attempts = { count: entry.failures, sinceMs: entry.failingSinceMs, lastMs }
      const nextMs = lastMs + exponentialDelayMs(entry.failures, retryBackoff)
      entry.revision = { error: error.retryable ? { ...error, nextMs, ...(isPersistent(attempts) && { attempts }) } : error }
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

  /** Repeats a lookup during which a Run was requested, whatever its result: what the user has pushed may be newer. */
  async #lookUp(stack: Stack, entry: CachedRevision): Promise<string> {
    entry.isOutdated = false
    try {
      const revision = await this.#options.resolve(stack)
      if (!entry.isOutdated) return revision
    } catch (error) {
      if (!entry.isOutdated) throw error
    }
    return await this.#lookUp(stack, entry)
  }
}

/** Recognizes `SourceError` of `execution/workspace/` by its shape, because this module must not import it. Any other error is retryable. */
function revisionError(thrown: unknown): RevisionError {
  const { reason, message, retryable } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<RevisionError>
  if (typeof reason === 'string' && typeof retryable === 'boolean') return { reason, message: message ?? reason, retryable }
  return { reason: 'SourceUnavailable', message: message ?? String(thrown), retryable: true }
}
