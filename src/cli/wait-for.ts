import { type Client, listWatch } from '../kubernetes/client/index.ts'
import { formatDuration, type KubeObject, type Resource } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type WaitOptions = { namespace?: string; name: string; timeoutMs: number; what: string }

/**
 * Watches one object until `look` returns something: `object` is undefined while there is none. A broken connection is
 * mended under way.
 * @throws {CliError} timedOut after `timeoutMs`; what `look` throws.
 */
export async function waitFor<Body, T>(
  client: Client,
  resource: Resource<Body>,
  { namespace, name, timeoutMs, what }: WaitOptions,
  look: (object: KubeObject<Body> | undefined) => T | undefined,
): Promise<T> {
  const stop = new AbortController()
  const ended = Promise.withResolvers<T>()
  const see = (object: KubeObject<Body> | undefined) => {
    try {
      const found = look(object)
      if (found !== undefined) ended.resolve(found)
    } catch (error) {
      ended.reject(error)
    }
  }
  const timer = setTimeout(
    () =>
      ended.reject(
        new CliError(`${what} took longer than ${formatDuration(timeoutMs)}`, {
          exitCode: exitCodes.timedOut,
          hint: 'it goes on; --timeout waits longer',
        }),
      ),
    timeoutMs,
  )
  const watching = listWatch(client, resource, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
    signal: stop.signal,
    onReplace: items => see(items.find(({ metadata }) => metadata.name === name)),
    onEvent: ({ type, object }) => {
      if (type === 'BOOKMARK' || object.metadata.name !== name) return
      see(type === 'DELETED' ? undefined : object)
    },
    onError: error => {
      if ((error as { code?: unknown }).code === 403) ended.reject(error)
    },
  })
  try {
    return await ended.promise
  } finally {
    clearTimeout(timer)
    stop.abort()
    await watching
  }
}
