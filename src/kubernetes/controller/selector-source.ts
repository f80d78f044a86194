import type { KubeObject } from '../object/index.ts'
import type { ChangingSelector } from './changing-selector.ts'
import type { FeedHost, InformerSource } from './informer-source.ts'
import { selectionTest } from './selection.ts'

/** Fills a cache with what a {@link ChangingSelector} selects: a change ends the watch and begins with a list. */
export class SelectorSource implements InformerSource {
  readonly #selector: ChangingSelector
  /** The keys and objects of the cache. */
  readonly #objects: () => Iterable<readonly [key: string, object: KubeObject<unknown>]>
  #selects: (object: KubeObject<unknown>) => boolean = () => false
  #receivedVersion = ''

  constructor(selector: ChangingSelector, objects: () => Iterable<readonly [key: string, object: KubeObject<unknown>]>) {
    this.#selector = selector
    this.#objects = objects
  }

  get receivedVersion(): string {
    return this.#receivedVersion
  }

  get isFilled(): boolean {
    return this.#receivedVersion !== ''
  }

  includes(object: KubeObject<unknown>): boolean {
    return this.#selects(object)
  }

  async run(host: FeedHost, signal: AbortSignal): Promise<void> {
    let watch = new AbortController()
    const follow = () => {
      watch.abort()
      watch = new AbortController()
      const { value } = this.#selector
      this.#receivedVersion = ''
      if (value === undefined || signal.aborted) return
      const selects = selectionTest({ labelSelector: value })
      this.#selects = selects
      host.forget([...this.#objects()].flatMap(([key, object]) => (selects(object) ? [] : [key])))
      const { signal: own } = watch
      // An error can only be a closed client.
      void host.follow({
        labelSelector: value || undefined,
        includes: selects,
        keys: () => undefined,
        signal: own,
        onVersion: version => {
          if (own.aborted) return
          this.#receivedVersion = version
          host.synced()
        },
      })
    }
    const unsubscribe = this.#selector.onChange(follow)
    follow()
    await new Promise<void>(resolve => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    unsubscribe()
    watch.abort()
  }
}
