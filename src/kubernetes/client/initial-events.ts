import { type KubeObject, objectKey, type WatchEvent } from '../object/index.ts'
import type { Client } from './client.ts'
import type { ListWatchOptions } from './list-watch.ts'
import { GarbageError } from './watch-lines.ts'

/** On the bookmark that ends the list; {@link https://kubernetes.io/docs/reference/using-api/api-concepts/#streaming-lists}. */
const endAnnotation = 'k8s.io/initial-events-end'

/** The first events of a watch with `sendInitialEvents`: an ADDED for each object there is, then a bookmark that says so. */
export class InitialEvents<Body> {
  /** The version the list is of; undefined until its end came. */
  resourceVersion: string | undefined
  readonly #parts: ListWatchOptions<Body>['parts'] | undefined
  readonly #items = new Map<string, KubeObject<Body>>()

  constructor(parts: ListWatchOptions<Body>['parts']) {
    this.#parts = parts?.begin() ? parts : undefined
  }

  /** What was gathered; empty where the reader takes parts. */
  get items(): KubeObject<Body>[] {
    return [...this.#items.values()]
  }

  /** Takes lines up to the end of the list; returns the events after it. @throws as `parse` does. */
  take(lines: string[], parse: (line: string) => WatchEvent<KubeObject<Body>>): WatchEvent<KubeObject<Body>>[] {
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
        if (this.#parts) throw new GarbageError('a list over a watch brought a deletion before its end')
        this.#items.delete(objectKey(event.object))
      } else if (this.#parts) {
        added.push(event.object)
      } else {
        this.#items.set(objectKey(event.object), event.object)
      }
    }
    if (added.length > 0) this.#parts?.add(added)
    return rest
  }
}

const known = new WeakMap<Client, boolean>()

/** Since when servers refuse `sendInitialEvents` if they cannot, instead of passing it over; in most of them it is on. */
const sinceMinor = 32

/** Whether the server's version has lists over watches; asked once per client. False while it cannot be found out. */
export async function canStreamLists(client: Client, signal: AbortSignal): Promise<boolean> {
  const before = known.get(client)
  if (before !== undefined) return before
  try {
    const bound = AbortSignal.any([signal, AbortSignal.timeout(5_000)])
    // Short: on a connection that is open already, where it can be. Every process that watches asks it first.
    const version = await (await client.request({ method: 'GET', path: '/version', isShort: true, signal: bound })).json()
    const { major, minor } = version as { major?: unknown; minor?: unknown }
    const can = Number(major) > 1 || (Number(major) === 1 && Number.parseInt(String(minor), 10) >= sinceMinor)
    known.set(client, can)
    return can
  } catch {
    return false
  }
}
