import { type Client, listWatch } from '../kubernetes/client/index.ts'
import type { KubeObject, Resource } from '../kubernetes/object/index.ts'

export type WatchObjectOptions<Body> = {
  /** Undefined for a cluster-scoped kind. */
  namespace: string | undefined
  name: string
  signal: AbortSignal
  /** The object now, and after each change; undefined: it does not exist. */
  onChange(object: KubeObject<Body> | undefined): void
  /** Reports an error; the watch is retried after `retryInMs`. */
  onError(error: unknown, retryInMs: number): void
}

/** Watches one object, until the signal aborts, with permissions that name it. */
export function watchObject<Body>(client: Client, resource: Resource<Body>, options: WatchObjectOptions<Body>): void {
  const { namespace, name, signal, onChange, onError } = options
  void listWatch(client, resource, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
    signal,
    onReplace: items => onChange(items[0]),
    onEvent: ({ type, object }) => {
      if (type !== 'BOOKMARK') onChange(type === 'DELETED' ? undefined : object)
    },
    onError,
  })
}
