import type { Registry } from '../registry/index.ts'
import type { Store } from '../storage/index.ts'
import { Definitions } from './definitions.ts'
import { expireEvents } from './expire-events.ts'
import { GarbageCollector } from './garbage-collector.ts'
import { Namespaces } from './namespaces.ts'
import { WorkQueue } from './work-queue.ts'

const expireEveryMs = 60_000

/** What the server does by itself, after writes are durable: owners, namespaces, definitions, old Events. */
export class Lifecycle {
  readonly #store: Store
  readonly #queue: WorkQueue
  readonly #collector: GarbageCollector
  readonly #namespaces: Namespaces
  readonly #definitions: Definitions
  readonly #onError: (error: unknown, what: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, registry: Registry, onError: (error: unknown, what: string) => void) {
    this.#store = store
    this.#onError = onError
    this.#queue = new WorkQueue((error, key) => onError(error, `cannot finish ${key} yet`))
    this.#collector = new GarbageCollector(store, registry, this.#queue)
    this.#namespaces = new Namespaces(store, registry, this.#queue)
    this.#definitions = new Definitions(store, registry, this.#queue)
  }

  async start(): Promise<void> {
    this.#store.onCommit((table, events) => {
      this.#collector.follow(table, events)
      this.#namespaces.follow(table, events)
      this.#definitions.follow(table, events)
    })
    await this.#namespaces.start()
    this.#definitions.start()
    this.#collector.start()
    this.#timer = setInterval(() => {
      expireEvents(this.#store).catch(error => this.#onError(error, 'cannot remove old events'))
    }, expireEveryMs)
    this.#timer.unref()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#queue.stop()
  }
}
