import { deepEqual, ok } from 'node:assert/strict'
import { type Client, configMapResource, listWatch } from '../../../src/kubernetes/client/index.ts'
import { eventually } from '../eventually.ts'
import { describeError, isDocumented } from './documented-errors.ts'

/** On a machine that is busy with other tests. */
const settleMs = 60_000

type Item = { metadata: { namespace?: string; name: string; resourceVersion: string } }

/** Names of objects by what is known of them: a write without an answer may have been executed. */
class Known {
  readonly present = new Set<string>()
  readonly unsure = new Set<string>()

  settle(key: string, isPresent: boolean | undefined): void {
    this.present.delete(key)
    this.unsure.delete(key)
    if (isPresent === undefined) this.unsure.add(key)
    else if (isPresent) this.present.add(key)
  }
}

/** An informer through the gateway, which checks each event: versions rise strictly between two lists. */
class CheckedInformer {
  readonly cache = new Map<string, string>()
  lists = 0
  events = 0
  readonly violations: string[] = []
  #last = 0

  constructor(client: Client, options: { fieldSelector?: string; labelSelector?: string; streamLists: boolean; signal: AbortSignal }) {
    void listWatch(client, configMapResource, {
      ...options,
      backoff: { minMs: 50, maxMs: 200 },
      onReplace: (items, version) => {
        this.lists++
        this.#last = Number(version)
        this.cache.clear()
        for (const item of items) this.cache.set(keyOf(item), item.metadata.resourceVersion)
      },
      onEvent: ({ type, object }) => {
        const { resourceVersion: version } = object.metadata
        if (type !== 'BOOKMARK' && Number(version) <= this.#last) this.violations.push(`${type} ${version} after ${this.#last}`)
        this.#last = Math.max(this.#last, Number(version))
        if (type === 'BOOKMARK') return
        this.events++
        const key = keyOf(object)
        if (type === 'ADDED' && this.cache.has(key)) this.violations.push(`${key} is ADDED twice`)
        if (type !== 'ADDED' && !this.cache.has(key)) this.violations.push(`${key} is ${type} and unknown`)
        if (type === 'DELETED') this.cache.delete(key)
        else this.cache.set(key, version)
      },
    })
  }
}

const keyOf = ({ metadata: { namespace, name } }: Item) => `${namespace}/${name}`

/**
 * Clients of a gateway that write, list and watch ConfigMaps of several partitions while faults happen, and check what they see: no list is partial, no event is
 * missing, doubled or out of order, every error is one that is documented, and every cache is the list at the end. For tests, and for the bench of many faults.
 */
export class FaultedClients {
  readonly #client: Client
  readonly #namespaces: readonly string[]
  readonly #random: () => number
  readonly #known = new Known()
  readonly #informers: CheckedInformer[]
  readonly #abort = new AbortController()
  readonly #violations: string[] = []
  readonly counts = { writes: 0, failedWrites: 0, lists: 0, failedLists: 0 }
  #running: Promise<unknown> = Promise.resolve()
  #next = 0
  #isStopping = false

  /** `namespaces` in different partitions. */
  constructor(client: Client, namespaces: readonly string[], random: () => number) {
    this.#client = client
    this.#namespaces = namespaces
    this.#random = random
    const { signal } = this.#abort
    this.#informers = [
      ...[true, false].map(streamLists => new CheckedInformer(client, { streamLists, signal })),
      new CheckedInformer(client, { labelSelector: 'kind=even', streamLists: true, signal }),
      new CheckedInformer(client, { fieldSelector: `metadata.namespace=${namespaces[0]}`, streamLists: true, signal }),
    ]
  }

  /** Events and lists of each informer until now. */
  get informers(): string {
    return this.#informers.map(({ events, lists }) => `${events}/${lists}`).join(' ')
  }

  /** Begins to write and to list, until {@link finish}; resolves when every informer has seen an event. */
  async start(): Promise<void> {
    this.#running = Promise.all([...this.#namespaces.map(namespace => this.#write(namespace)), this.#list()])
    await eventually(() => this.#informers.every(({ events }) => events > 0), 'the first events', settleMs)
  }

  /** Ends the writes, waits until every cache is current, and checks everything. */
  async finish(): Promise<{ readonly writes: number; readonly events: number; readonly lists: number; readonly relists: number }> {
    this.#isStopping = true
    await this.#running
    const all = await eventually(
      async () =>
        await this.#client
          .resource(configMapResource)
          .listAll({})
          .catch(error => void this.#failed('the last list', error)),
      'the last list',
      settleMs,
    )
    const expected = new Map(all.items.map(item => [keyOf(item), item.metadata.resourceVersion]))
    for (const key of this.#known.present) ok(expected.has(key), `${key} was created, and is not in the last list`)
    const labels = new Map(all.items.map(item => [keyOf(item), item.metadata.labels?.kind]))
    const selections = [
      () => true,
      () => true,
      (key: string) => labels.get(key) === 'even',
      (key: string) => key.startsWith(`${this.#namespaces[0]}/`),
    ]
    const sorted = (entries: Iterable<[string, string]>) => [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
    for (const [index, informer] of this.#informers.entries()) {
      const wanted = sorted([...expected].filter(([key]) => selections[index]?.(key)))
      const text = JSON.stringify(wanted)
      await eventually(() => JSON.stringify(sorted(informer.cache)) === text, `the cache of informer ${index}`, settleMs).catch(() =>
        deepEqual(sorted(informer.cache), wanted),
      )
    }
    this.#abort.abort()
    deepEqual([...this.#violations, ...this.#informers.flatMap(({ violations }) => violations)], [])
    const events = this.#informers.reduce((sum, informer) => sum + informer.events, 0)
    const relists = this.#informers.reduce((sum, informer) => sum + informer.lists - 1, 0)
    return { writes: this.counts.writes, events, lists: this.counts.lists, relists }
  }

  close(): void {
    this.#isStopping = true
    this.#abort.abort()
  }

  #failed(what: string, error: unknown): void {
    if (!isDocumented(error)) this.#violations.push(`${what} failed: ${describeError(error)}`)
  }

  async #write(namespace: string): Promise<void> {
    const maps = this.#client.resource(configMapResource)
    const own: string[] = []
    while (!this.#isStopping) {
      const isDeletion = own.length > 20 && this.#random() < 0.4
      const name = isDeletion ? (own.splice(Math.floor(this.#random() * own.length), 1)[0] as string) : `o-${this.#next++}`
      const key = `${namespace}/${name}`
      // Until it is answered, both are true.
      this.#known.settle(key, undefined)
      try {
        if (isDeletion) await maps.delete(name, { namespace })
        else {
          const labels = { kind: Number(name.slice(2)) % 2 ? 'odd' : 'even' }
          await maps.create({ metadata: { name, namespace, labels }, data: { name } })
          own.push(name)
        }
        this.#known.settle(key, !isDeletion)
        this.counts.writes++
      } catch (error) {
        this.counts.failedWrites++
        this.#failed(`${isDeletion ? 'the deletion' : 'the creation'} of ${key}`, error)
      }
      await pause(5)
    }
  }

  async #list(): Promise<void> {
    while (!this.#isStopping) {
      const before = new Set(this.#known.present)
      const abort = AbortSignal.timeout(5_000)
      try {
        const response = await this.#client.request({ method: 'GET', path: '/api/v1/configmaps', signal: abort, timeoutMs: 5_000 })
        const { items } = (await response.json()) as { items: Item[] }
        this.counts.lists++
        const found = new Set(items.map(keyOf))
        // What was deleted meanwhile is not in `present` any more.
        for (const key of before)
          if (!found.has(key) && this.#known.present.has(key))
            this.#violations.push(`a list does not have ${key}, which was created before`)
        if (found.size !== items.length) this.#violations.push('a list has an object twice')
      } catch (error) {
        this.counts.failedLists++
        this.#failed('a list', error)
      }
      await pause(20)
    }
  }
}

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
