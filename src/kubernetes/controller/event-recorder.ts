import { type Client, type EventBody, eventResource } from '../client/index.ts'
import { isReason, type KubeObject, type NewObject, rfc3339 } from '../object/index.ts'
import { coerceError, type Log, silentLog } from '../util/log.ts'

export type EventRecorderOptions = {
  client: Client
  /** The reporting component, as shown by `kubectl describe`. */
  component: string
  log?: Log | undefined
  /** Wall clock in milliseconds. */
  wallMs?: (() => number) | undefined
  random?: (() => number) | undefined
}

type Aggregate = { name: string; namespace: string; count: number; lastMs: number; message: string; firstMs: number }
type Budget = { tokens: number; atMs: number }

/** A repeat within this time increments the Event's count instead of creating another Event. */
const aggregateMs = 600_000
/** Beyond this many different messages of one reason, they are combined into one Event. */
const similarLimit = 10
/** Per object: a burst of 25, then one every five minutes, as in client-go. */
const budgetTokens = 25
const budgetRefillMs = 300_000
/** Invariant 10: bounds of what is remembered and of what waits to be written. */
const rememberedLimit = 4_096
const pendingLimit = 1_000

/**
 * Writes core/v1 Events asynchronously. Repeats increment a count, floods are limited, and an Event that cannot be written is dropped
 * with a debug line: Events are informational, not state.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions
  readonly #log: Log
  readonly #wallMs: () => number
  readonly #aggregates = new Map<string, Aggregate>()
  readonly #similar = new Map<string, { messages: Set<string>; sinceMs: number }>()
  readonly #budgets = new Map<string, Budget>()
  /** Events to write, by name: a repeat replaces an earlier one that is not written yet. */
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

  /** Resolves when everything recorded so far is written or dropped. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  #write(aggregate: Aggregate, object: KubeObject<unknown>, type: 'Normal' | 'Warning', reason: string): void {
    const events = this.#options.client.resource(eventResource)
    if (this.#pending.size >= pendingLimit && !this.#pending.has(aggregate.name)) {
      const [oldest] = this.#pending.keys()
      if (oldest !== undefined) this.#pending.delete(oldest)
      this.#log.debug({ reason }, 'too many pending events, dropping the oldest')
    }
    this.#pending.set(aggregate.name, async () => {
      const { name, namespace, count, message, lastMs } = aggregate
      if (count > 1) {
        try {
          await events.patch(name, { count, message, lastTimestamp: rfc3339(lastMs) }, { type: 'merge', namespace })
          return
        } catch (error) {
          // The Event has expired: create it again.
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
        this.#log.debug({ err: coerceError(error) }, 'event was not written')
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

  /** `name.<time and random number in hex>`, as client-go names them, within the maximum length of a name. */
  #name({ metadata }: KubeObject<unknown>, nowMs: number): string {
    const { random = Math.random } = this.#options
    const unique =
      nowMs.toString(16) +
      Math.floor(random() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0')
    return `${metadata.name.slice(0, 252 - unique.length)}.${unique}`
  }

  /** Combines many messages of one reason, such as those that contain a time, into one Event. */
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
