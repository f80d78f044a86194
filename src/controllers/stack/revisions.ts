import { setTimeout as sleep } from 'node:timers/promises'
import { defaults, type Stack } from '../../api/index.ts'
import { parseDuration } from '../../kubernetes/object/index.ts'
import type { RevisionError, StackInput } from './decide-stack.ts'

export type RevisionsOptions = {
  resolve(stack: Stack): Promise<string>
  /** Called with a Stack whose answer {@link Revisions.get} did not have yet, or has changed. */
  onAnswer(stack: Stack): void
  nowMs(): number
  /** Lookups at the same time; default 8. */
  maxConcurrent?: number
}

type Entry = {
  source: string
  answer: StackInput['revision']
  atMs: number
  failures: number
  isRunning: boolean
  looking: Promise<void> | undefined
  /** The request for a Run that the present answer is fresh enough for. */
  freshFor: string | undefined
}

const firstRetryMs = 5_000
const maxRetryMs = 300_000

/**
 * Remembers the revision of each Stack's source and looks again at its interval, without making a reconcile wait for a
 * slow repository: the answer comes as another reconcile.
 */
export class Revisions {
  readonly #options: RevisionsOptions
  readonly #entries = new Map<string, Entry>()
  readonly #waiting: (() => void)[] = []
  #running = 0

  constructor(options: RevisionsOptions) {
    this.#options = options
  }

  /**
   * What is known of the source now, starting a lookup where that is due. `freshFor` is a request for a Run: a person
   * who asks for one has usually just pushed, so for a new request the source is looked at first.
   */
  get(stack: Stack, freshFor: string | undefined): { revision: StackInput['revision']; checkInMs?: number } {
    const { uid } = stack.metadata
    const source = JSON.stringify(stack.spec.source)
    let entry = this.#entries.get(uid)
    if (entry?.source !== source) {
      entry = { source, answer: undefined, atMs: 0, failures: 0, isRunning: false, looking: undefined, freshFor }
      this.#entries.set(uid, entry)
      this.#look(stack, entry)
      return { revision: entry.answer }
    }
    const isMoving = stack.spec.source.inline === undefined && stack.spec.source.git?.commit === undefined
    if (freshFor !== undefined && freshFor !== entry.freshFor && isMoving) {
      entry.freshFor = freshFor
      entry.answer = undefined
      if (!entry.isRunning) this.#look(stack, entry)
    }
    if (entry.isRunning) return { revision: entry.answer }
    const everyMs = this.#everyMs(stack, entry, isMoving)
    if (everyMs === undefined) return { revision: entry.answer }
    const inMs = entry.atMs + everyMs - this.#options.nowMs()
    if (inMs > 0) return { revision: entry.answer, checkInMs: inMs }
    this.#look(stack, entry)
    return { revision: entry.answer }
  }

  /** Resolves with the answer that is being looked for, or after so long without one. */
  async soon(uid: string, waitMs: number): Promise<void> {
    const looking = this.#entries.get(uid)?.looking
    if (!looking) return
    const enough = new AbortController()
    await Promise.race([looking, sleep(waitMs, undefined, { signal: enough.signal }).catch(() => {})])
    enough.abort()
  }

  /** A Stack is gone. */
  forget(uid: string): void {
    this.#entries.delete(uid)
  }

  #everyMs(stack: Stack, { answer, failures }: Entry, isMoving: boolean): number | undefined {
    const intervalMs = Math.max(1_000, parseDuration(stack.spec.source.interval ?? defaults.sourceInterval))
    if (typeof answer !== 'object') return isMoving ? intervalMs : undefined
    if (!answer.error.retryable) return Math.max(intervalMs, 60_000)
    return Math.min(maxRetryMs, firstRetryMs * 2 ** Math.min(10, failures - 1))
  }

  #look(stack: Stack, entry: Entry): void {
    entry.isRunning = true
    entry.looking = this.#lookAndTell(stack, entry)
  }

  async #lookAndTell(stack: Stack, entry: Entry): Promise<void> {
    const { maxConcurrent = 8, nowMs, resolve, onAnswer } = this.#options
    // What is in the Stack itself needs no place in the queue behind slow repositories.
    const isQueued = stack.spec.source.inline === undefined
    if (isQueued && this.#running >= maxConcurrent) await new Promise<void>(go => this.#waiting.push(go))
    if (isQueued) this.#running++
    const before = JSON.stringify(entry.answer)
    try {
      entry.answer = await resolve(stack)
      entry.failures = 0
    } catch (thrown) {
      entry.answer = { error: revisionError(thrown) }
      entry.failures++
    }
    if (isQueued) {
      this.#running--
      this.#waiting.shift()?.()
    }
    entry.isRunning = false
    entry.atMs = nowMs()
    // Also with the same answer: the next look has to be planned.
    if (this.#entries.get(stack.metadata.uid) === entry || JSON.stringify(entry.answer) !== before) onAnswer(stack)
  }
}

/** `SourceError` of workspace/ by its shape, as this room does not know that one; anything else may pass. */
function revisionError(thrown: unknown): RevisionError {
  const { reason, message, retryable } = (typeof thrown === 'object' && thrown !== null ? thrown : {}) as Partial<RevisionError>
  if (typeof reason === 'string' && typeof retryable === 'boolean') return { reason, message: message ?? reason, retryable }
  return { reason: 'SourceUnavailable', message: message ?? String(thrown), retryable: true }
}
