import { labels, type Worker, workerPoolResource, workerResource } from '../../api/index.ts'
import { type Client, listWatch } from '../../kubernetes/client/index.ts'
import { formatDuration, isReason, parseDuration } from '../../kubernetes/object/index.ts'
import { type AccessOptions, withClient } from '../access.ts'
import { CliError, usageError } from '../cli-error.ts'
import { exitCodes } from '../exit-codes.ts'
import { suggest } from '../suggest.ts'
import { note, print } from '../terminal.ts'

export type DrainOptions = AccessOptions & { pool?: string; wait: boolean; timeout: string }

/**
 * `oarlock drain WORKER…`, `oarlock drain --pool POOL`: the workers accept no new Runs, finish their active Runs within the drain grace of their
 * pool, and exit. The pool starts new workers when it needs them.
 */
export async function drain(names: string[], options: DrainOptions): Promise<void> {
  await withClient(options, async client => {
    const found = await selectWorkers(client, names, options.pool)
    if (found.length === 0) {
      print(`pool/${options.pool} has no workers`)
      return
    }
    const workers = client.resource(workerResource)
    const draining = new Map<string, Worker>()
    for (const { metadata } of found) {
      try {
        draining.set(metadata.name, await workers.patch(metadata.name, { spec: { drain: true } }, { type: 'merge' }))
        print(`worker/${metadata.name} draining`)
      } catch (error) {
        if (!isReason(error, 'NotFound')) throw error
        print(`worker/${metadata.name} deleted`)
      }
    }
    if (options.wait) await waitUntilDeleted(client, draining, parseDuration(options.timeout))
  })
}

/** The workers that are named, or all of a pool. @throws {CliError} unless it is exactly one of both. */
export async function selectWorkers(client: Client, names: string[], pool: string | undefined): Promise<Worker[]> {
  if (names.length > 0 === (pool !== undefined))
    throw usageError('specify workers by name, or a pool with --pool', '"oarlock get workers" lists them')
  return pool === undefined ? await getWorkers(client, names) : await workersOf(client, pool)
}

/** @throws {CliError} if one of the workers does not exist. */
export async function getWorkers(client: Client, names: string[]): Promise<Worker[]> {
  const { items } = await client.resource(workerResource).listAll()
  return names.map(typed => {
    const name = typed.replace(/^workers?\//, '')
    const found = items.find(({ metadata }) => metadata.name === name)
    if (found) return found
    const close = suggest(
      name,
      items.map(({ metadata }) => metadata.name),
    )
    const hint = close ? `did you mean ${close}?` : '"oarlock get workers" lists them'
    throw new CliError(`worker "${name}" not found`, { exitCode: exitCodes.notFound, hint })
  })
}

async function workersOf(client: Client, pool: string): Promise<Worker[]> {
  const { items } = await client.resource(workerResource).listAll({ labelSelector: `${labels.pool}=${pool}` })
  if (items.length === 0 && !(await client.resource(workerPoolResource).getOrUndefined(pool))) {
    throw new CliError(`pool "${pool}" not found`, { exitCode: exitCodes.notFound, hint: '"oarlock get workerpools" lists them' })
  }
  return items
}

/** Waits until all workers are deleted, and prints the active Runs of each. */
async function waitUntilDeleted(client: Client, draining: Map<string, Worker>, timeoutMs: number): Promise<void> {
  if (draining.size === 0) return
  const stop = new AbortController()
  const ended = Promise.withResolvers<void>()
  const printed = new Map<string, string>()
  const timer = setTimeout(() => {
    const message = `${[...draining.keys()].join(', ')} did not exit within ${formatDuration(timeoutMs)}`
    ended.reject(
      new CliError(message, { exitCode: exitCodes.timedOut, hint: 'the workers are still draining; wait longer with --timeout' }),
    )
  }, timeoutMs)
  const onDeleted = (name: string) => {
    if (!draining.delete(name)) return
    print(`worker/${name} deleted`)
    if (draining.size === 0) ended.resolve()
  }
  const onWorker = ({ metadata, status }: Worker) => {
    const { name } = metadata
    const before = draining.get(name)
    if (!before) return
    // A later worker of the same name is another worker.
    if (before.metadata.uid !== metadata.uid) return onDeleted(name)
    const runs = status?.runs ?? []
    const text = runs.length === 0 ? 'is exiting' : `is finishing ${runs.join(', ')}`
    if (printed.get(name) !== text) note(`  ${name} ${text}`)
    printed.set(name, text)
  }
  const watching = listWatch(client, workerResource, {
    signal: stop.signal,
    onReplace: items => {
      const names = new Set(items.map(({ metadata }) => metadata.name))
      for (const name of [...draining.keys()]) if (!names.has(name)) onDeleted(name)
      items.forEach(onWorker)
    },
    onEvent: ({ type, object }) => {
      if (type === 'DELETED' && draining.get(object.metadata.name)?.metadata.uid === object.metadata.uid) onDeleted(object.metadata.name)
      else if (type === 'ADDED' || type === 'MODIFIED') onWorker(object)
    },
    onError: error => {
      if (isReason(error, 'Forbidden')) ended.reject(error)
    },
  })
  try {
    await ended.promise
  } finally {
    clearTimeout(timer)
    stop.abort()
    await watching
  }
}
