import { setTimeout as sleep } from 'node:timers/promises'
import { defaults, type Stack } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import { exponentialDelayMs } from '../../kubernetes/util/index.ts'
import type { RevisionError, StackInput } from './decision.ts'
import { usesCurrentSource } from './destruction.ts'
import { isPersistent } from './persistent-failure.ts'
import { lookupKey, type RevisionLookup, RevisionLookups } from './revision-lookups.ts'

export type RevisionCacheOptions = {
  resolve(stack: Stack): Promise<string>
  /** Called with a Stack whose lookup has ended: its revision may have changed, and the next lookup must be scheduled. */
  onResolved(stack: Stack): void
  nowMs(): number
  /** Maximum number of concurrent lookups; default 8. */
  maxConcurrent?: number
}

type CachedRevision = {
  /** As it was at the last call. */
  stack: Stack
  /** Of {@link lookupKey}. */
  key: string | undefined
  source: string
  revision: StackInput['revision']
  resolvedAtMs: number
  /** Of the lookup whose result this is. */
  order: number
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
 * reconcile: its result triggers another one. Of the Stacks of one git ref, one looks it up for all.
 */
export class RevisionCache {
  readonly #options: RevisionCacheOptions
  readonly #entries = new Map<string, CachedRevision>()
  /** Entries of the same key: Stacks of one git ref. */
  readonly #groups = new Map<string, Set<CachedRevision>>()
  readonly #lookups: RevisionLookups

  constructor(options: RevisionCacheOptions) {
    this.#options = options
    this.#lookups = new RevisionLookups(stack => options.resolve(stack), options.maxConcurrent ?? 8)
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
      this.delete(uid)
      entry = {
        stack,
        key: lookupKey(stack),
        source,
        revision: undefined,
        resolvedAtMs: 0,
        order: 0,
        failures: 0,
        failingSinceMs: 0,
        isResolving: false,
        isOutdated: false,
        lookup: undefined,
        request,
        isForDestruction,
      }
      this.#add(uid, entry)
      this.#startLookup(entry, { mustBegin: true })
      return { revision: entry.revision }
    }
    entry.stack = stack
    const isMutable = stack.spec.source.inline === undefined && stack.spec.source.git?.commit === undefined
    const isRequested = (request !== undefined && request !== entry.request) || (isForDestruction && !entry.isForDestruction)
    entry.isForDestruction = isForDestruction
    if (isRequested && isMutable) {
      entry.request = request ?? entry.request
      entry.revision = undefined
      if (entry.isResolving) entry.isOutdated = true
      else this.#startLookup(entry, { mustBegin: true })
    }
    if (entry.isResolving) return { revision: entry.revision }
    const intervalMs = this.#intervalMs(stack, entry, isMutable)
    if (intervalMs === undefined) return { revision: entry.revision }
    const recheckAfterMs = entry.resolvedAtMs + intervalMs - this.#options.nowMs()
    if (recheckAfterMs > 0) return { revision: entry.revision, recheckAfterMs }
    this.#startLookup(entry, { mustBegin: false })
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
    const entry = this.#entries.get(uid)
    if (!entry) return
    this.#entries.delete(uid)
    if (entry.key === undefined) return
    const group = this.#groups.get(entry.key)
    group?.delete(entry)
    if (group?.size === 0) this.#groups.delete(entry.key)
  }

  #add(uid: string, entry: CachedRevision): void {
    this.#entries.set(uid, entry)
    if (entry.key === undefined) return
    const group = this.#groups.get(entry.key)
    if (group) group.add(entry)
    else this.#groups.set(entry.key, new Set([entry]))
  }

  #intervalMs(stack: Stack, { revision, failures }: CachedRevision, isMutable: boolean): number | undefined {
    if (typeof revision !== 'object' && !isMutable) return undefined
    const intervalMs = Math.max(1_000, parseDuration(stack.spec.source.interval ?? defaults.sourceInterval))
    if (typeof revision !== 'object') return intervalMs
    if (!revision.error.retryable) return Math.max(intervalMs, 60_000)
    return exponentialDelayMs(failures, retryBackoff)
  }

  #startLookup(entry: CachedRevision, options: { mustBegin: boolean }): void {
    entry.isResolving = true
    entry.lookup = this.#resolve(entry, options)
  }

  async #resolve(entry: CachedRevision, options: { mustBegin: boolean }): Promise<void> {
    const { nowMs, onResolved } = this.#options
    const { uid } = entry.stack.metadata
    const previous = JSON.stringify(entry.revision)
    try {
      const { revision, order } = await this.#lookUp(entry, options)
      this.#record(entry, revision, order)
      this.#shareWithGroup(entry, revision, order)
    } catch (thrown) {
      const lastMs = nowMs()
      if (entry.failures++ === 0) entry.failingSinceMs = lastMs
      const error = revisionError(thrown)
      const attempts = { count: entry.failures, sinceMs: entry.failingSinceMs, lastMs }
      const nextMs = lastMs + exponentialDelayMs(entry.failures, retryBackoff)
      entry.revision = { error: error.retryable ? { ...error, nextMs, ...(isPersistent(attempts) && { attempts }) } : error }
      entry.resolvedAtMs = lastMs
    }
    entry.isResolving = false
    // Also with an unchanged revision: the reconcile schedules the next lookup.
    if (this.#entries.get(uid) === entry || JSON.stringify(entry.revision) !== previous) onResolved(entry.stack)
  }

  #record(entry: CachedRevision, revision: string, order: number): void {
    entry.revision = revision
    entry.failures = 0
    entry.order = order
    entry.resolvedAtMs = this.#options.nowMs()
  }

  /** The others get the result as their own, unless theirs is of a later lookup or they are looking up themselves. */
  #shareWithGroup({ key }: CachedRevision, revision: string, order: number): void {
    for (const other of (key !== undefined && this.#groups.get(key)) || []) {
      if (other.isResolving || other.order >= order) continue
      const isChanged = other.revision !== revision
      this.#record(other, revision, order)
      if (isChanged) this.#options.onResolved(other.stack)
    }
  }

  /** Repeats a lookup during which a Run was requested, whatever its result: what the user has pushed may be newer. */
  async #lookUp(entry: CachedRevision, options: { mustBegin: boolean }): Promise<{ revision: string; order: number }> {
    entry.isOutdated = false
    const lookup: RevisionLookup = this.#lookups.start(entry.stack, options)
    try {
      const revision = await lookup.result
      if (!entry.isOutdated) return { revision, order: lookup.order }
    } catch (error) {
      if (!entry.isOutdated) throw error
    }
    return await this.#lookUp(entry, { mustBegin: true })
  }
}

/** Recognizes `SourceError` of `execution/workspace/` by its shape, because this module must not import it. Any other error is retryable. */
function revisionError(thrown: unknown): RevisionError {
  const { reason, message, retryable } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<RevisionError>
  if (typeof reason === 'string' && typeof retryable === 'boolean') return { reason, message: message ?? reason, retryable }
  return { reason: 'SourceUnavailable', message: message ?? String(thrown), retryable: true }
}
