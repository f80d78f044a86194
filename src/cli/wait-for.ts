import { type Client, listWatch } from '../kubernetes/client/index.ts'
import { formatDuration, type KubeObject, type Resource } from '../kubernetes/object/index.ts'
import { CliError } from './cli-error.ts'
import { exitCodes } from './exit-codes.ts'

export type WaitOptions = { namespace?: string; name: string; timeoutMs: number /** Completes "timed out waiting for …". */; what: string }

export const timedOut = (timeoutMs: number, what: string) =>
  new CliError(`timed out after ${formatDuration(timeoutMs)} waiting for ${what}`, {
    exitCode: exitCodes.timedOut,
    hint: 'the operation continues; wait longer with --timeout',
  })

/**
 * Watches one object until `check` returns a value, and resolves with it. `check` gets undefined while the object does not exist. A broken
 * connection is re-established.
 * @throws {CliError} timedOut after `timeoutMs`; what `check` throws.
 */
export async function waitFor<Body, T>(
  client: Client,
  resource: Resource<Body>,
  { namespace, name, timeoutMs, what }: WaitOptions,
  check: (object: KubeObject<Body> | undefined) => T | undefined,
): Promise<T> {
  const stop = new AbortController()
  const ended = Promise.withResolvers<T>()
  const onObject = (object: KubeObject<Body> | undefined) => {
    try {
      const found = check(object)
      if (found !== undefined) ended.resolve(found)
    } catch (error) {
      ended.reject(error)
    }
  }
  const timer = setTimeout(() => ended.reject(timedOut(timeoutMs, what)), timeoutMs)
  const watching = listWatch(client, resource, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
    signal: stop.signal,
    onReplace: items => onObject(items.find(({ metadata }) => metadata.name === name)),
    onEvent: ({ type, object }) => {
      if (type === 'BOOKMARK' || object.metadata.name !== name) return
      onObject(type === 'DELETED' ? undefined : object)
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
