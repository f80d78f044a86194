import { checkWorkerLabels, isolationLevels, networks, parsePairs as parseAnyPairs, type WorkerStatus } from '../../api/index.ts'
import { parseQuantity } from '../../kubernetes/object/index.ts'
import type { Detection } from '../engine/index.ts'
import { WorkerOptionError } from './worker-option-error.ts'

/** What a worker registers with, so that dispatch places suitable Runs on it (docs/queue.md). */
export type WorkerCapabilities = {
  /** Labels of its Worker object. */
  readonly labels: Readonly<Record<string, string>>
  /** Versions by engine; undefined: not configured. */
  readonly engines: Readonly<Record<string, string>> | undefined
  readonly capacity: WorkerStatus['capacity']
  /** Levels of isolation; undefined: not configured, the worker detects them. */
  readonly isolation: WorkerStatus['isolation']
  /** Networks of sandboxes; undefined: not configured, the worker detects them with the levels. */
  readonly networks?: WorkerStatus['networks']
}

export const noCapabilities: WorkerCapabilities = { labels: {}, engines: undefined, capacity: undefined, isolation: undefined }

/**
 * Reads OARLOCK_LABELS and OARLOCK_ENGINES (both `key=value,key=value`), OARLOCK_CPU and OARLOCK_MEMORY (for all its Runs together, such as
 * `4` and `8Gi`), OARLOCK_ISOLATION_LEVELS and OARLOCK_NETWORKS (such as
 * `Process,Sandbox` and `Private,None`; each is checked again before a Run uses it).
 * @param labelOptions of the command line, as `key=value`; they override OARLOCK_LABELS.
 * @throws {WorkerOptionError} naming the variable, its value and what is allowed.
 */
export function capabilitiesFromEnv(
  env: Readonly<Record<string, string | undefined>>,
  labelOptions: readonly string[] = [],
): WorkerCapabilities {
  const own = { ...parsePairs('OARLOCK_LABELS', env.OARLOCK_LABELS?.split(',')), ...parsePairs('--label', labelOptions) }
  const cpu = checkQuantity('OARLOCK_CPU', env.OARLOCK_CPU)
  const memory = checkQuantity('OARLOCK_MEMORY', env.OARLOCK_MEMORY)
  return {
    labels: orOptionError(() => checkWorkerLabels(own)),
    engines: env.OARLOCK_ENGINES === undefined ? undefined : parsePairs('OARLOCK_ENGINES', env.OARLOCK_ENGINES.split(',')),
    isolation: parseList('OARLOCK_ISOLATION_LEVELS', env.OARLOCK_ISOLATION_LEVELS, isolationLevels),
    networks: parseList('OARLOCK_NETWORKS', env.OARLOCK_NETWORKS, networks),
    capacity: cpu || memory ? { ...(cpu && { cpu }), ...(memory && { memory }) } : undefined,
  }
}

/** @throws {WorkerOptionError} if a word is no `key=value`. */
export const parsePairs = (name: string, words: readonly string[] = []): Record<string, string> =>
  orOptionError(() => parseAnyPairs(name, words))

function orOptionError<Value>(parse: () => Value): Value {
  try {
    return parse()
  } catch (error) {
    throw new WorkerOptionError((error as TypeError).message)
  }
}

/** Undefined if the variable is not set or empty. */
export function parseList<Word extends string>(name: string, text: string | undefined, allowed: readonly Word[]): Word[] | undefined {
  if (!text) return undefined
  return text.split(',').map(word => {
    const known = allowed.find(each => each === word.trim())
    if (known !== undefined) return known
    throw new WorkerOptionError(`${name} contains ${JSON.stringify(word)}; it must be among ${allowed.join(', ')}, separated by commas`)
  })
}

/** @throws {WorkerOptionError} if it is not a quantity. */
export function checkQuantity(name: string, text: string | undefined): string | undefined {
  if (!text) return undefined
  try {
    parseQuantity(text)
    return text
  } catch (error) {
    throw new WorkerOptionError(`${name} ${JSON.stringify(text)} must be a quantity such as 4, 500m or 8Gi: ${(error as Error).message}`)
  }
}

/** Versions of the engines that were found. Engines without a version of their own (command, manifests) have Oarlock's. */
export function engineVersions(detected: Readonly<Record<string, Detection>>): Record<string, string> {
  return Object.fromEntries(Object.entries(detected).flatMap(([name, found]) => (found.found ? [[name, found.version]] : [])))
}
