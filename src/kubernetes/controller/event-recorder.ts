import { type Client, type EventBody, eventResource } from '../client/index.ts'
import { isReason, type KubeObject, type NewObject, rfc3339 } from '../object/index.ts'
import { coerceError, type Log, silentLog } from '../util/log.ts'

export type EventRecorderOptions = {
  client: Client
  /** Who reports, as `kubectl describe` shows it. */
  component: string
  log?: Log | undefined
  /** Wall clock in milliseconds. */
  wallMs?: (() => number) | undefined
  random?: (() => number) | undefined
}

type Aggregate = { name: string; namespace: string; count: number; lastMs: number; message: string; firstMs: number }
type Budget = { tokens: number; atMs: number }

/** A repeat within this long counts up the Event instead of making another. */
const aggregateMs = 600_000
/** More than this many different messages of one reason become one Event that says so. */
const similarLimit = 10
/** Per object: a burst of 25, then one each five minutes, as client-go. */
const budgetTokens = 25
const budgetRefillMs = 300_000
/** Invariant 10: what is remembered, and what waits to be written. */
const rememberedLimit = 4_096
const pendingLimit = 1_000

/**
 * Writes core/v1 Events without making anybody wait. Repeats count up, floods are cut, and an Event that cannot be
 * written is dropped with a debug line: events are news, not state.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #log: Log
  readonly #wallMs: () => number
  readonly #aggregates = new Map<string, Aggregate>()
  readonly #similar = new Map<string, { messages: Set<string>; sinceMs: number }>()
  readonly #budgets = new Map<string, Budget>()
  /** Events to write, by name: a repeat that is not written yet replaces itself. */
  readonly #pending = new Map<string, () => Promise<void>>()
  #writing: Promise<void> | undefined

  constructor(options: EventRecorderOptions) {
    this.#options = options
    this.#log = (options.log ?? silentLog).child({ events: options.component })
    this.#wallMs = options.wallMs ?? Date.now
  }

  /** Reports something expected. `reason` is one CamelCase word, `message` one sentence without secrets (invariant 9). */
  normal(object: KubeObject<unknown>, reason: string, message: string): void {
    this.record(object, 'Normal', reason, message)
  }

  warning(object: KubeObject<unknown>, reason: string, message: string): void {
    this.record(object, 'Warning', reason, message)
  }

  record(object: KubeObject<unknown>, type: 'Normal' | 'Warning', reason: string, message: string): void {
    const nowMs = this.#wallMs()
    if (!this.#spend(object.metadata.uid, nowMs)) return
    const text = this.#combine(`${object.metadata.uid}|${type}|${reason}`, message.slice(0, 1_024), nowMs)
    const key = `${object.metadata.uid}|${type}|${reason}|${text.key}`
    const known = this.#aggregates.get(key)
    const namespace = object.metadata.namespace ?? 'default'
    const isRepeat = known !== undefined && nowMs - known.lastMs < aggregateMs
    const aggregate: Aggregate = isRepeat
      ? { ...known, count: known.count + 1, lastMs: nowMs, message: text.message }
      : { name: this.#name(object, nowMs), namespace, count: 1, firstMs: nowMs, lastMs: nowMs, message: text.message }
    remember(this.#aggregates, key, aggregate)
    this.#write(aggregate, object, type, reason)
  }

  /** Resolves when everything recorded so far is written or given up. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  #write(aggregate: Aggregate, object: KubeObject<unknown>, type: 'Normal' | 'Warning', reason: string): void {
    const events = this.#options.client.resource(eventResource)
    if (this.#pending.size >= pendingLimit && !this.#pending.has(aggregate.name)) {
      const [oldest] = this.#pending.keys()
      if (oldest !== undefined) this.#pending.delete(oldest)
      this.#log.debug({ reason }, 'too many events wait to be written, the oldest was dropped')
    }
    this.#pending.set(aggregate.name, async () => {
      const { name, namespace, count, message, lastMs } = aggregate
      if (count > 1) {
        try {
          await events.patch(name, { count, message, lastTimestamp: rfc3339(lastMs) }, { type: 'merge', namespace })
          return
        } catch (error) {
          // Events expire: then the repeat is news again.
          if (!isReason(error, 'NotFound')) throw error
        }
      }
      await events.create(this.#event(aggregate, object, type, reason))
    })
    this.#writing ??= this.#drain()
  }

  async #drain(): Promise<void> {
    await Promise.resolve()
    for (let [next] = this.#pending; next; [next] = this.#pending) {
      const [name, write] = next
      this.#pending.delete(name)
      try {
        await write()
      } catch (error) {
        this.#log.debug({ err: coerceError(error) }, 'event could not be written')
      }
    }
    this.#writing = undefined
  }

  #event(aggregate: Aggregate, object: KubeObject<unknown>, type: 'Normal' | 'Warning', reason: string): NewObject<EventBody> {
    const { apiVersion, kind, metadata } = object
    const { name, namespace, count, message, firstMs, lastMs } = aggregate
    return {
      metadata: { name, namespace },
      involvedObject: {
        apiVersion,
        kind,
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resourceVersion: metadata.resourceVersion,
      },
      type,
      reason,
      message,
      count,
      firstTimestamp: rfc3339(firstMs),
      lastTimestamp: rfc3339(lastMs),
      source: { component: this.#options.component },
      reportingComponent: this.#options.component,
    }
  }

  /** `name.<time and chance in hex>` as client-go names them, within what a name may be long. */
  #name({ metadata }: KubeObject<unknown>, nowMs: number): string {
    const { random = Math.random } = this.#options
    const unique =
      nowMs.toString(16) +
      Math.floor(random() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0')
    return `${metadata.name.slice(0, 252 - unique.length)}.${unique}`
  }

  /** Many messages of one reason, such as those with a time in them, are told as one that changes. */
  #combine(key: string, message: string, nowMs: number): { key: string; message: string } {
    let similar = this.#similar.get(key)
    if (!similar || nowMs - similar.sinceMs > aggregateMs) similar = { messages: new Set(), sinceMs: nowMs }
    remember(this.#similar, key, similar)
    if (similar.messages.size < similarLimit) similar.messages.add(message)
    if (similar.messages.has(message)) return { key: message, message }
    return { key: '(combined)', message: `(combined from similar events): ${message}` }
  }

  #spend(uid: string, nowMs: number): boolean {
    const budget = this.#budgets.get(uid) ?? { tokens: budgetTokens, atMs: nowMs }
    const tokens = Math.min(budgetTokens, budget.tokens + Math.max(0, nowMs - budget.atMs) / budgetRefillMs)
    const isAllowed = tokens >= 1
    remember(this.#budgets, uid, { tokens: isAllowed ? tokens - 1 : tokens, atMs: nowMs })
    return isAllowed
  }
}

/** Keeps the most recently used entries of a Map, which remembers the order of insertion. */
function remember<T>(map: Map<string, T>, key: string, value: T): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > rememberedLimit) for (const oldest of map.keys()) return void map.delete(oldest)
}
