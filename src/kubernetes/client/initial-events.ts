import { type KubeObject, objectKey, type WatchEvent } from '../object/index.ts'
import type { Client } from './client.ts'
import { WatchDecodeError } from './line-splitter.ts'
import type { ListWatchOptions } from './list-watch.ts'

/** Set on the bookmark that ends the list; {@link https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists}. */
const endAnnotation = 'k8s.io/initial-events-end'

/** The first events of a watch with `sendInitialEvents`: ADDED for each existing object, then a bookmark that ends the list. */
export class InitialEvents<Body> {
  /** The version of the list; undefined until the bookmark that ends it. */
  resourceVersion: string | undefined
  readonly #chunks: ListWatchOptions<Body>['chunks'] | undefined
  readonly #items = new Map<string, KubeObject<Body>>()

  constructor(chunks: ListWatchOptions<Body>['chunks']) {
    this.#chunks = chunks?.begin() ? chunks : undefined
  }

  /** The collected objects; empty when they are delivered in chunks. */
  get items(): KubeObject<Body>[] {
    return [...this.#items.values()]
  }

  /** Consumes lines up to the end of the list; returns the events after it. @throws as `parse` does. */
  consume(lines: string[], parse: (line: string) => WatchEvent<KubeObject<Body>>): WatchEvent<KubeObject<Body>>[] {
    const added: KubeObject<Body>[] = []
    const rest: WatchEvent<KubeObject<Body>>[] = []
    for (const line of lines) {
      const event = parse(line)
      if (this.resourceVersion !== undefined) {
        rest.push(event)
      } else if (event.type === 'BOOKMARK') {
        const { annotations, resourceVersion } = event.object.metadata
        if (annotations?.[endAnnotation] === 'true') this.resourceVersion = resourceVersion
      } else if (event.type === 'DELETED') {
        if (this.#chunks) throw new WatchDecodeError('a streaming list contained a DELETED event before its end')
        this.#items.delete(objectKey(event.object))
      } else if (this.#chunks) {
        added.push(event.object)
      } else {
        this.#items.set(objectKey(event.object), event.object)
      }
    }
    if (added.length > 0) this.#chunks?.add(added)
    return rest
  }
}

const supportByClient = new WeakMap<Client, boolean>()

/** From this version on, servers without support for `sendInitialEvents` reject it instead of ignoring it; most support it. */
const firstMinorVersion = 32

/** Whether the server's version supports streaming lists; requested once per client. False if the request fails. */
export async function canStreamLists(client: Client, signal: AbortSignal): Promise<boolean> {
  const cached = supportByClient.get(client)
  if (cached !== undefined) return cached
  try {
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(5_000)])
    // Short: reuses an open connection where possible. Every process that watches sends this first.
    const version = await (await client.request({ method: 'GET', path: '/version', isShort: true, signal: timeout })).json()
    const { major, minor } = version as { major?: unknown; minor?: unknown }
    const isSupported = Number(major) > 1 || (Number(major) === 1 && Number.parseInt(String(minor), 10) >= firstMinorVersion)
    supportByClient.set(client, isSupported)
    return isSupported
  } catch {
    return false
  }
}
